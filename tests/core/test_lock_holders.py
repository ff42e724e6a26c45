"""Who held the lock: for random interleavings of threads and processes, the right holder is
reported.
"""

from __future__ import annotations

import bisect
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from core.work_programs import until_refused

import queryprof
from queryprof.analysis.lock_holders import LockHolders
from queryprof.collect.reader import read_profile
from queryprof.model import LockEvent, Profile, Thread

pytestmark = pytest.mark.once

ROUNDS = 25


def holds_and_waits(profile: Profile, statement: str) -> tuple[list[LockEvent], list[LockEvent]]:
    """Return the holds, and the waits of a statement for the write lock. A COMMIT may wait for a
    reader too. So may the waiter, if its write lock comes while the holder, whose COMMIT ends, is
    interrupted with its read lock.
    """
    holds = [event for event in profile.lock_events if event.kind == "write"]
    waits = [event for event in profile.lock_events if event.kind == "wait" and not event.writes]
    return holds, [wait for wait in waits if wait.statement.startswith(statement)]


def hold(path: Path, name: str, held: threading.Event, asked: threading.Event, s: float) -> None:
    """Hold the lock until it was refused to the main thread, and for some seconds more."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute(f"/* {name} */ BEGIN IMMEDIATE")
    held.set()
    asked.wait()
    until_refused(f"self/task/{threading.main_thread().native_id}")
    time.sleep(s)
    connection.execute("COMMIT")
    connection.close()


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_of_threads(tmp_path: Path, mode: str) -> None:
    path, draw = tmp_path / "t.db", random.Random(1)
    setup = sqlite3.connect(path)
    setup.execute(f"PRAGMA journal_mode = {mode}")
    setup.execute("CREATE TABLE t (a)")
    setup.execute("INSERT INTO t VALUES (0)")
    setup.commit()
    setup.close()
    ends_ns, names = [], []
    with queryprof.profile(tmp_path / "t.qprof"):
        for number in range(ROUNDS):
            held, asked = threading.Event(), threading.Event()
            name, seconds = f"holder {draw.randrange(3)}", draw.uniform(0.005, 0.03)
            holder = threading.Thread(
                target=hold, args=(path, name, held, asked, seconds), name=name
            )
            holder.start()
            held.wait()
            waiter = sqlite3.connect(path, isolation_level=None, timeout=60)
            asked.set()
            waiter.execute("UPDATE t SET a = ?", (number,))
            waiter.close()
            holder.join()
            ends_ns.append(time.time_ns())
            names.append(name)
    holds, waits = holds_and_waits(read_profile(str(tmp_path / "t.qprof")), "UPDATE")
    assert len(waits) == ROUNDS
    for wait in waits:
        expected = names[bisect.bisect(ends_ns, wait.start_unix_ns)]
        assert LockHolders(holds).blockers_of(wait)[0][0].thread.name == expected


def test_of_several_holders_the_longest_is_first() -> None:
    """A wait goes through three holds: one began before it, one is inside, and one continues after
    it.
    """

    def event(kind: str, name: str, start_ms: int, end_ms: int) -> LockEvent:
        thread = Thread(1, name)
        return LockEvent(
            kind,
            "/t.db",
            name,
            (),
            "",
            thread,
            name,
            (),
            start_ms * 10**6,
            (end_ms - start_ms) * 10**6,
        )

    holds = [
        event("write", "before", 0, 20),
        event("write", "inside", 21, 50),
        event("write", "after", 51, 90),
        event("write", "later", 91, 95),
    ]
    found = LockHolders(holds).blockers_of(event("wait", "waiter", 10, 60))
    assert [(hold.statement, ns // 10**6) for hold, ns in found] == [
        ("inside", 29),
        ("before", 10),
        ("after", 9),
    ]


def test_a_connection_does_not_wait_for_its_own_lock() -> None:
    """A commit waits for the readers. Its own connection reads too, and longer than the others."""

    def event(kind: str, connection: int, start_ms: int, end_ms: int, writes: int = 0) -> LockEvent:
        thread, name = Thread(1, "MainThread"), f"connection {connection}"
        times = start_ms * 10**6, (end_ms - start_ms) * 10**6
        return LockEvent(kind, "/t.db", name, (), "", thread, name, (), *times, connection, writes)

    holds = [event("read", 1, 0, 60), event("read", 2, 20, 50)]
    found = LockHolders(holds).blockers_of(event("wait", 1, 10, 60, writes=1))
    assert [hold.statement for hold, _ in found] == ["connection 2"]


HOLDER = """
    import sqlite3, sys, time
    sys.path.insert(0, sys.argv[3])
    from core.work_programs import until_refused
    path, seconds = sys.argv[1], float(sys.argv[2])
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("BEGIN EXCLUSIVE")
    print("begun", flush=True)
    until_refused(sys.stdin.readline().strip())
    time.sleep(seconds)
    connection.execute("COMMIT")
    connection.close()
"""

PROGRAM = """
    import os, random, sqlite3, subprocess, sys
    path, mode, tests = sys.argv[1:]
    setup = sqlite3.connect(path)
    setup.execute(f"PRAGMA journal_mode = {mode}")
    setup.execute("CREATE TABLE t (a)")
    setup.commit()
    setup.close()
    draw = random.Random(2)
    for number in range(10):
        seconds = str(draw.uniform(0.005, 0.05))
        command = [sys.executable, "holder.py", path, seconds, tests]
        pipe = subprocess.PIPE
        holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        holder.stdout.readline()
        connection = sqlite3.connect(path, isolation_level=None, timeout=60)
        print(os.getpid(), file=holder.stdin, flush=True)  # which requests the lock
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        connection.close()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
"""


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_of_processes(tmp_path: Path, mode: str) -> None:
    """Each wait was for the process that held the lock at that time."""
    (tmp_path / "holder.py").write_text(textwrap.dedent(HOLDER))
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    command = [Path(sys.executable).with_name("queryprof"), "run", "--no-report", "-o", "t.qprof"]
    arguments = ["program.py", str(tmp_path / "t.db"), mode, str(Path(__file__).parents[1])]
    subprocess.run([*command, *arguments], cwd=tmp_path, check=True)
    profile = read_profile(str(tmp_path / "t.qprof"))
    holds, waits = holds_and_waits(profile, "INSERT")
    assert len(waits) == 10
    for wait in waits:
        holder = LockHolders(holds).blockers_of(wait)[0][0]
        assert holder.statement == "BEGIN EXCLUSIVE"
        assert holder.thread.process_id != wait.thread.process_id
        assert holder.start_unix_ns <= wait.start_unix_ns


def test_longest_and_newest_holds_are_kept(tmp_path: Path) -> None:
    """Of more holds than the table has rows: 4096."""
    connection = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    before_ns = []
    with queryprof.profile() as recording:
        for number in range(5_000):
            before_ns.append(time.time_ns())
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(0.05 if number == 700 else 0.001)
            connection.execute("COMMIT")
    connection.close()
    holds = [one for one in recording.profile.lock_events if one.kind == "write"]
    starts = sorted(one.start_unix_ns for one in holds)
    newest = before_ns[-1000:]
    assert all(
        bisect.bisect_left(starts, begin) < bisect.bisect_left(starts, end)
        for begin, end in pairwise([*newest, time.time_ns()])
    )
    assert any(before_ns[700] <= one.start_unix_ns < before_ns[701] for one in holds)
