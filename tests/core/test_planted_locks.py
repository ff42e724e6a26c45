"""The holds and waits of four processes on one database, on one clock: 200 holds with known times.

Each process writes down when it asked for the lock, had it, gave it back and continued. A recorded
time must lie between the two times around its call, within a millisecond.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from queryprof.analysis.lock_holders import LockHolders
from queryprof.analysis.recent import Period, recent_activity
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profiles
from queryprof.model import LockEvent

pytestmark = pytest.mark.once

PROCESSES, HOLDS = 4, 50
TOLERANCE_NS = 1_000_000

WORKER = """
import json, random, sqlite3, sys, time
draw = random.Random(int(sys.argv[1]))
connection = sqlite3.connect("t.db", isolation_level=None, timeout=60)
sys.stdin.readline()  # all processes begin together
for number in range(int(sys.argv[2])):
    time.sleep(draw.uniform(0, 0.02))
    times = [time.time_ns()]
    connection.execute("BEGIN IMMEDIATE")
    times.append(time.time_ns())
    time.sleep(draw.uniform(0.002, 0.01))
    times.append(time.time_ns())
    connection.execute("COMMIT")
    times.append(time.time_ns())
    print(json.dumps(times))
"""

Hold = tuple[int, int, int, int]
"""When a process asked for the lock, had it, gave it back and continued (Unix time in ns)."""


def run_workers(folder: Path) -> dict[int, list[Hold]]:
    """Run the processes, each with a trace of its own. Return the holds by process id."""
    (folder / "worker.py").write_text(WORKER)
    with sqlite3.connect(folder / "t.db") as setup:
        setup.execute("CREATE TABLE t (a)")
    setup.close()
    environment = {**os.environ, "QUERYPROF": f"{folder}{os.sep}"}
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen(
            [sys.executable, "worker.py", str(seed), str(HOLDS)],
            cwd=folder,
            env=environment,
            stdin=pipe,
            stdout=pipe,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    found = {}
    for worker in workers:
        printed, _ = worker.communicate()
        assert worker.returncode == 0
        found[worker.pid] = [tuple(json.loads(line)) for line in printed.splitlines()]
    return found


def is_between(at_ns: int, least_ns: int, most_ns: int) -> bool:
    return least_ns - TOLERANCE_NS <= at_ns <= most_ns + TOLERANCE_NS


def is_recorded(hold: Hold, event: LockEvent) -> bool:
    asked, had, gives, continued = hold
    end_ns = event.start_unix_ns + event.duration_ns
    return is_between(event.start_unix_ns, asked, had) and is_between(end_ns, gives, continued)


def test_holds_and_waits_of_processes(tmp_path: Path) -> None:
    planted = run_workers(tmp_path)
    traces = [str(path) for path in tmp_path.glob("*.qprof")]
    profile, _ = read_profiles(traces)
    pids = {process.id: process.pid for process in profile.processes}
    whole = Period(min(one.start_unix_ns for one in profile.processes), 2**63 - 1)
    seen = recent_activity(Report(profile), whole)
    assert len(seen.holds) == PROCESSES * HOLDS
    for pid, holds in planted.items():
        events = [one for one in seen.holds if pids[one.thread.process_id] == pid]
        assert all(map(is_recorded, holds, events)), pid
    holders = LockHolders(profile.lock_events)
    for wait in seen.waits:
        own = pids[wait.thread.process_id]
        end_ns = wait.start_unix_ns + wait.duration_ns
        # a COMMIT waits for readers, which hold the lock for a short time
        calls = [hold[2:] if wait.writes else hold[:2] for hold in planted[own]]
        assert any(
            is_between(wait.start_unix_ns, *call) and is_between(end_ns, *call) for call in calls
        )
        others = {pid: holds for pid, holds in planted.items() if pid != own}
        certain = [
            pid
            for pid, holds in others.items()
            for _, had, gives, _ in holds
            if min(end_ns, gives) - max(wait.start_unix_ns, had) > TOLERANCE_NS
        ]
        found = [pids[holder.thread.process_id] for holder, _ in holders.refusing_holds(wait)]
        assert wait.writes or (set(certain) <= set(found) <= set(others))
