"""The newest calls of a process: each of them once, in order, also after the process was killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from conftest import Run
from queryprof.collect.reader import read_profile, read_profiles
from queryprof.collect.recent_calls import CALLS_IN_FILE, CallChoice
from queryprof.model import RecentCall

Script = Callable[..., Path]
ALL = CallChoice()

THREADS = """
import sqlite3, threading

def work(number):
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t{number} (a)")
    for value in range(40):
        connection.execute(f"INSERT INTO t{number} VALUES (?)", (value,))
    connection.execute(f"SELECT a FROM t{number}").fetchall()
    connection.commit()
    connection.close()

threads = [threading.Thread(target=work, args=(number,), name=f"T{number}") for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

MANY = """
import sqlite3
connection = sqlite3.connect(":memory:")
for number in range({count}):
    connection.execute("SELECT ?", (number,))
connection.execute("SELECT 'newest'")
"""


def recorded_calls(
    queryprof: Run, script: Script, text: str, **options: object
) -> tuple[RecentCall, ...]:
    queryprof("run", "--no-report", "-o", "x.qprof", script(text), **options)
    return read_profile("x.qprof", calls=CallChoice()).recent_calls


def test_each_call_is_kept_once_and_in_order(queryprof: Run, script: Script) -> None:
    calls = recorded_calls(queryprof, script, THREADS)
    for number in range(3):
        own = [call for call in calls if call.thread.name == f"T{number}"]
        assert [(call.operation, call.statement) for call in own] == [
            ("connect", "(connect)"),
            ("execute", f"CREATE TABLE t{number}(a)"),
            *[("execute", f"INSERT INTO t{number} VALUES (?)")] * 40,
            ("execute", f"SELECT a FROM t{number}"),
            ("commit", "COMMIT"),
            ("close", "(close)"),
        ]
        assert all(call.path[0].function == "work" for call in own)
        for call, following in pairwise(own):
            assert call.duration_ns is not None
            assert 0 <= call.duration_ns <= following.start_unix_ns - call.start_unix_ns + 1000
    assert not any(call.has_failed for call in calls)


def test_the_newest_calls_replace_the_oldest(queryprof: Run, script: Script) -> None:
    """The setting is the number of calls; 64 is the smallest."""
    Path("pyproject.toml").write_text("[tool.queryprof]\nrecent_calls = 64\n")
    calls = recorded_calls(queryprof, script, MANY.format(count=1000) + "connection.close()\n")
    assert len(calls) == 64
    starts = [call.start_unix_ns for call in calls]
    assert starts == sorted(set(starts))
    assert [call.statement for call in calls[-2:]] == ["SELECT ?", "(close)"]


def test_no_calls_are_kept_if_the_setting_is_0(queryprof: Run, script: Script) -> None:
    Path("pyproject.toml").write_text("[tool.queryprof]\nrecent_calls = 0\n")
    assert recorded_calls(queryprof, script, MANY.format(count=10)) == ()


def test_the_trace_of_a_process_that_ended_has_fewer(queryprof: Run, script: Script) -> None:
    calls = recorded_calls(queryprof, script, MANY.format(count=CALLS_IN_FILE.limit + 100))
    assert len(calls) == CALLS_IN_FILE.limit
    killed = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    calls = recorded_calls(queryprof, script, MANY.format(count=CALLS_IN_FILE.limit + 100) + killed)
    assert len(calls) == CALLS_IN_FILE.limit + 102  # and the connect


def test_fetches_count_and_failures_are_marked(queryprof: Run, script: Script) -> None:
    text = """
    import sqlite3
    connection = sqlite3.connect(":memory:")
    cursor = connection.execute("SELECT 1 UNION ALL SELECT 2")
    started = len(cursor.fetchall())
    try:
        connection.execute("SELECT nothing")
    except sqlite3.OperationalError:
        pass
    """
    calls = recorded_calls(queryprof, script, textwrap.dedent(text))
    profile = read_profile("x.qprof")
    _, query, failed = calls
    times_ns = sum(one.total_ns for one in profile.aggregates if "UNION" in one.statement)
    assert query.duration_ns == pytest.approx(times_ns, rel=1e-3, abs=2)
    assert [call.has_failed for call in calls] == [False, False, True]
    assert failed.duration_ns


def test_a_forked_child_keeps_only_its_own_calls(queryprof: Run, script: Script) -> None:
    text = """
import os, sqlite3
connection = sqlite3.connect(":memory:")
for _ in range(200):
    connection.execute("SELECT 'parent'")
if os.fork() == 0:
    child = sqlite3.connect(":memory:")
    child.execute("SELECT 1, 'child'")
    child.close()
    os._exit(0)
os.wait()
connection.execute("SELECT 1, 2, 'parent again'")
"""
    calls = recorded_calls(queryprof, script, text)
    processes = {}
    for call in calls:
        processes.setdefault(call.thread.process_id, []).append(call.statement)
    parent, child = sorted(processes.values(), key=len, reverse=True)
    assert parent == ["(connect)", *["SELECT ?"] * 200, "SELECT ?, ?, ?"]
    assert child == ["(connect)", "SELECT ?, ?", "(close)"]


COUNTED = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
number = 0
while True:
    connection.execute("SELECT ?", (number,)).fetchone()
    number += 1
    if number % 50 == 0:
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


def killed_calls(folder: Path, lines: int) -> tuple[int, tuple[RecentCall, ...]]:
    """Kill a recorded program after it has printed some lines. Returns the number of executions that
    it had printed, and the calls in its trace.
    """
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(COUNTED)
    environment = {**os.environ, "QUERYPROF": str(folder / "x.qprof")}
    command = [sys.executable, str(program), str(folder / "a.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        for _ in range(lines):
            printed = process.stdout.readline()
        process.kill()
        rest = process.stdout.read().split()
    known = int((rest or [printed])[-1])
    return known, read_profile(str(folder / "x.qprof"), calls=CallChoice()).recent_calls


def check_killed(folder: Path, lines: int) -> None:
    known, calls = killed_calls(folder, lines)
    executed = [call for call in calls if call.operation == "execute"]
    ended = [call for call in executed if call.duration_ns is not None]
    assert known <= len(ended) <= known + 50
    assert len(executed) - len(ended) <= 1
    starts = [call.start_unix_ns for call in ended]
    assert starts == sorted(set(starts))


def test_a_killed_process_loses_no_call(tmp_path: Path) -> None:
    for number, lines in enumerate((1, 7, 30)):
        check_killed(tmp_path / str(number), lines)


@pytest.mark.slow
def test_a_storm_of_kills(tmp_path: Path) -> None:
    for number in range(300):
        check_killed(tmp_path / str(number), random.randint(1, 60))


def test_a_call_in_progress_is_in_the_trace_of_a_killed_process(
    queryprof: Run, script: Script
) -> None:
    text = """
import os, signal, sqlite3
connection = sqlite3.connect(":memory:")
connection.create_function("kill", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
connection.execute("SELECT 1").fetchone()
connection.execute("SELECT kill()")
"""
    *ended, last = recorded_calls(queryprof, script, text)
    assert last.duration_ns is None
    assert last.path[0].line == 6
    assert ended[-1].start_unix_ns < last.start_unix_ns
    assert [call.duration_ns is None for call in ended] == [False] * len(ended)


def test_a_window_has_its_calls_until_it_is_merged(queryprof: Run, tmp_path: Path) -> None:
    text = """
import sqlite3, sys
connection = sqlite3.connect(":memory:")
connection.execute("SELECT 1")
print("ready", flush=True)
sys.stdin.readline()
"""
    (tmp_path / "program.py").write_text(text)
    path = str(tmp_path / "x.qprof")
    environment = {**os.environ, "QUERYPROF": path, "QUERYPROF_WINDOW": "5m"}
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == "ready\n"
        running = read_profile(path, calls=CallChoice()).recent_calls
        process.communicate("\n")
    assert [call.statement for call in running][:2] == ["(connect)", "SELECT ?"]
    ended = read_profile(path, calls=CallChoice()).recent_calls
    assert [call.statement for call in ended] == ["(connect)", "SELECT ?"]
    queryprof("merge", "merged.qprof", path)
    assert read_profile("merged.qprof", calls=CallChoice()).recent_calls == ()


@pytest.mark.parametrize(
    "fetch", ["fetchall()", "fetchmany(2)", "fetchone()", "__iter__().__next__()"]
)
def test_a_fetch_in_progress_is_a_call_in_progress(
    queryprof: Run, script: Script, fetch: str
) -> None:
    """The first row has come, and the program is killed while SQLite makes the second one."""
    text = f"""
import os, signal, sqlite3
connection = sqlite3.connect(":memory:")
kill = lambda number: number and os.kill(os.getpid(), signal.SIGKILL)
connection.create_function("kill", 1, kill)
cursor = connection.execute("SELECT kill(0) UNION ALL SELECT kill(0) UNION ALL SELECT kill(1)")
cursor.fetchone()
cursor.{fetch}
cursor.{fetch}
"""
    *_, last = recorded_calls(queryprof, script, text)
    assert last.statement.startswith("SELECT kill")
    assert last.duration_ns is None
    statements = [call.statement for call in read_profile("x.qprof", calls=ALL).recent_calls]
    assert len([one for one in statements if one.startswith("SELECT")]) == 1


def test_fetches_of_a_killed_process_count(queryprof: Run, script: Script) -> None:
    """The rows were fetched, and not yet added to the ring."""
    text = """
import os, signal, sqlite3, time
connection = sqlite3.connect(":memory:")
connection.create_function("wait", 1, lambda number: time.sleep(number * 0.05))
cursor = connection.execute("SELECT wait(0) UNION ALL SELECT wait(1) UNION ALL SELECT wait(0)")
cursor.fetchone(), cursor.fetchone(), cursor.fetchone()
os.kill(os.getpid(), signal.SIGKILL)
"""
    *_, query = recorded_calls(queryprof, script, text)
    assert query.duration_ns
    assert query.duration_ns >= 50_000_000


def test_only_the_period_is_read_with_the_calls_just_before_it(
    queryprof: Run, tmp_path: Path
) -> None:
    """These calls, one of each statement and line, show that nothing was overwritten since."""
    text = """
import sqlite3, sys
connection = sqlite3.connect(":memory:")
for number in range(5):
    connection.execute("SELECT ?", (number,))
print("ready", flush=True)
sys.stdin.readline()
"""
    (tmp_path / "program.py").write_text(text)
    path = str(tmp_path / "x.qprof")
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "QUERYPROF": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        *_, newest = read_profile(path, calls=ALL).recent_calls
        later = CallChoice(newest.start_unix_ns + 10**9, newest.start_unix_ns + 2 * 10**9)
        running = read_profile(path, calls=later).recent_calls
        process.communicate("\n")
    ended, _ = read_profiles([path], calls=later)
    for kept in (running, ended.recent_calls):
        assert [one.statement for one in kept] == ["(connect)", "SELECT ?"]
        # The clock is calibrated while the process runs.
        assert abs(kept[-1].start_unix_ns - newest.start_unix_ns) < 10**6
