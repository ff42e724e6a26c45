"""Delays of a request other than its executions."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from queryprof.analysis.delays import Delay, Delays
from queryprof.collect.reader import read_profile
from queryprof.model import (
    Distribution,
    Frame,
    LockEvent,
    Loop,
    Profile,
    SlowSpan,
    StallEvent,
    Thread,
    ThreadUsage,
    UsageInterval,
)

pytestmark = pytest.mark.once

MS = 1_000_000
MAIN, OTHER = Thread(1, "MainThread"), Thread(1, "other")
REPORT, HOLD = Frame("report", "/app/main.py", 51), Frame("hold", "/app/jobs.py", 8)
NONE = Distribution(0, 0, 0, {})


def stall(start_ms: int, ms: int) -> StallEvent:
    return StallEvent(REPORT, (REPORT,), (), start_ms * MS, ms * MS)


def lock(kind: str, thread: Thread, start_ms: int, ms: int, frame: Frame) -> LockEvent:
    return LockEvent(kind, "/a.db", kind, (frame,), "", thread, "", (), start_ms * MS, ms * MS)


def reasons(
    stalls: tuple[StallEvent, ...] = (), locks: tuple[LockEvent, ...] = (), thread: Thread = MAIN
) -> tuple[Delay, ...]:
    """Return the reasons for a span in the main thread from 100 to 200 ms."""
    loop = Loop("asyncio", thread, True, 1, 0, 0, 0, 0, 0, NONE, NONE, (), (), stalls)
    span = SlowSpan("GET /", MAIN, 100 * MS, 100 * MS, 0, 0, False, 200, ())
    return Delays(Profile((), (), loops=(loop,), lock_events=locks)).delays_of_span(span)


def test_the_part_of_a_stall_that_is_in_the_span() -> None:
    assert reasons((stall(50, 80),)) == (Delay("stall", 30 * MS, REPORT, 1),)
    assert reasons((stall(110, 20), stall(150, 20), stall(10, 50))) == (
        Delay("stall", 40 * MS, REPORT, 2),
    )


def test_what_explains_little_or_is_of_another_thread_is_left_out() -> None:
    assert reasons((stall(100, 10),)) == (Delay("stall", 10 * MS, REPORT, 1),)
    assert reasons((stall(100, 9),)) == ()
    assert reasons((stall(100, 90),), thread=OTHER) == ()
    assert reasons(locks=(lock("wait", OTHER, 100, 50, REPORT),)) == ()


def of_threads(
    queue_ms: int | None = None, cpu_ms: int | None = None, others_ms: int = 0, database_ms: int = 0
) -> list[tuple[str, int]]:
    """Return the reasons for the same span while another thread computed."""
    span = SlowSpan(
        "GET /",
        MAIN,
        100 * MS,
        100 * MS,
        database_ms * MS,
        1,
        False,
        200,
        (),
        None if queue_ms is None else queue_ms * MS,
        None if cpu_ms is None else cpu_ms * MS,
    )
    busy = tuple(
        ThreadUsage(
            thread,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            100 * MS,
            (UsageInterval(0, 90 * MS, 0, 0), UsageInterval(100 * MS, others_ms * MS, 0, 0)),
        )
        for thread in (OTHER, MAIN, Thread(2, "other"))
    )
    found = Delays(Profile((), (), thread_usage=busy)).delays_of_span(span)
    return [(delay.kind, delay.ns // MS) for delay in found]


def test_what_threads_do_meanwhile() -> None:
    """Only threads of the same process count. Unknown times give no reason."""
    assert of_threads() == of_threads(queue_ms=9) == of_threads(others_ms=90) == []
    assert of_threads(queue_ms=10) == [("queue", 10)]
    assert of_threads(queue_ms=500) == [("queue", 100)]
    assert of_threads(cpu_ms=40) == [("cpu", 40)]
    assert of_threads(cpu_ms=0, others_ms=80) == [("others", 80)]
    assert of_threads(cpu_ms=0, others_ms=79) == []
    assert of_threads(cpu_ms=40, others_ms=90) == [("others", 60), ("cpu", 40)]
    assert of_threads(cpu_ms=10, database_ms=50, others_ms=90) == [("others", 40), ("cpu", 10)]


QUEUE = """
    import asyncio, time, queryprof
    from concurrent.futures import ThreadPoolExecutor
    def work():
        time.sleep(0.1)
    async def main():
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            first = loop.run_in_executor(pool, work)
            with queryprof.span("GET /queue"):
                start = time.perf_counter_ns()
                await asyncio.gather(*(loop.run_in_executor(pool, time.perf_counter_ns) for _ in range(3)))
                took = time.perf_counter_ns() - start
            await first
        print(took)
    asyncio.run(main())
"""


def test_a_request_that_waits_for_a_thread(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(textwrap.dedent(QUEUE))
    command = [Path(sys.executable).with_name("queryprof"), "run", "--no-report", "-o", "t.qprof"]
    run = subprocess.run(
        [*command, "app.py"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    (span,) = read_profile(str(tmp_path / "t.qprof")).slow_spans
    assert span.queue_ns is not None
    assert 50 * MS < span.queue_ns <= span.duration_ns
    assert span.queue_ns <= int(run.stdout) + 50 * MS


def test_who_held_the_lock() -> None:
    held = lock("write", OTHER, 90, 60, HOLD)
    assert reasons(locks=(held, lock("wait", MAIN, 110, 40, REPORT))) == (
        Delay("lock", 40 * MS, HOLD, 1),
    )
    assert reasons(locks=(lock("wait", MAIN, 110, 40, REPORT),)) == (
        Delay("lock", 40 * MS, None, 1),
    )


PROGRAM = """
    import asyncio, time, queryprof
    def report():
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            sum(range(1000))
    async def blocker():
        await asyncio.sleep(0.02)
        report()
    async def quick():
        with queryprof.span("GET /quick"):
            await asyncio.sleep(0.05)
    async def main():
        await asyncio.gather(blocker(), quick())
    asyncio.run(main())
"""


@pytest.mark.slow
def test_a_request_that_another_one_delays(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(textwrap.dedent(PROGRAM))
    command = [Path(sys.executable).with_name("queryprof"), "run", "--no-report", "-o", "t.qprof"]
    subprocess.run([*command, "app.py"], cwd=tmp_path, check=True)
    profile = read_profile(str(tmp_path / "t.qprof"))
    (span,) = profile.slow_spans
    (delay,) = Delays(profile).delays_of_span(span)
    assert delay.kind == "stall"
    assert delay.frame is not None
    assert delay.frame.function == "report"
    message = subprocess.run(
        [command[0], "report", "--show", "slowest-requests", "t.qprof"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert re.search(r"event loop blocked for \S+ m?s at report\(\) app\.py:", message)
