"""The resource usage of threads."""

from __future__ import annotations

import os
import resource
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from core.work_programs import ask, until_ended

import queryprof
from conftest import traces_in

TICK_S = 0.01
"""The resolution of the system's accounting."""


def test_what_threads_use() -> None:
    """CPU time, switches, bytes and calls of each thread are recorded, even of short-lived ones."""
    if not os.path.exists("/proc/self/task"):
        pytest.skip("needs Linux")

    used_s: list[float] = []
    switches: list[int] = []

    def computes() -> None:
        ask()
        while time.thread_time() < 0.3:
            sum(range(10_000))
        used_s.append(time.thread_time())

    def reads() -> None:
        ask()
        for _ in range(1000):
            with open(__file__, "rb", buffering=0) as file:
                file.read(1000)

    def sleeps() -> None:
        ask()
        for _ in range(200):
            time.sleep(0.0001)
        # Not every sleep is a switch: if other processes take long, it is over before it began.
        switches.append(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw)

    began_s = time.process_time()
    with queryprof.profile() as recording:
        for work in (computes, reads, sleeps):
            thread = threading.Thread(target=work, name=work.__name__)
            thread.start()
            until_ended(thread)
    most_s = time.process_time()
    usage = {u.thread.name: u for u in recording.profile.thread_usage}
    computed_s = (usage["computes"].user_ns + usage["computes"].system_ns) / 1e9
    assert used_s[0] - TICK_S <= computed_s <= most_s - began_s + TICK_S
    assert usage["reads"].read_bytes == 1_000_000
    assert usage["reads"].read_calls == 1000
    assert usage["sleeps"].voluntary_switches >= switches[0] > 0
    # An emulated processor's events between threads are writes of its threads.
    assert usage["MainThread"].written_bytes < 100


@pytest.mark.once
def test_what_a_living_thread_has_used_is_counted_once() -> None:
    """The figures may be read any number of times before it ends."""
    if not os.path.exists("/proc/self/task"):
        pytest.skip("needs Linux")
    has_read, go = threading.Event(), threading.Event()

    def reads() -> None:
        ask()
        with open(__file__, "rb", buffering=0) as file:
            for number in range(1500):
                file.seek(0)
                file.read(1000)
                if number == 999:
                    has_read.set()
                    go.wait()

    with queryprof.profile() as recording:
        thread = threading.Thread(target=reads, name="reads")
        thread.start()
        has_read.wait()
        for _ in range(3):
            with queryprof.profile() as inner:
                ask()
            assert inner.profile.aggregates
        go.set()
        until_ended(thread)
    usage = {u.thread.name: u for u in recording.profile.thread_usage}
    assert (usage["reads"].read_calls, usage["reads"].read_bytes) == (1500, 1_500_000)


@pytest.mark.once
@pytest.mark.slow
def test_the_profilers_own_work_is_no_threads() -> None:
    """Writing the trace does not count for the program."""
    if not os.path.exists("/proc/self/task"):
        pytest.skip("needs Linux")
    with queryprof.profile("x.qprof"):
        for number in range(40):
            with closing(sqlite3.connect(":memory:")) as connection:
                connection.execute(f"SELECT {number} AS n{number}").fetchall()
        time.sleep(1.3)
        ask()
        time.sleep(1.3)
        ask()
    (profile,) = traces_in(Path())
    usage = {u.thread.name: u for u in profile.thread_usage}
    assert usage["MainThread"].written_bytes < 1000
