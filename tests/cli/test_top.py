"""The live view: its figures add up to the recording, its keys work, and it disturbs nothing."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import QUERYPROF, Run
from queryprof.analysis.activity import SORT_KEYS, BusyStatement, combine_activity
from queryprof.collect.reader import read_profile
from queryprof.model import Profile
from queryprof.model.live import Activity, ProcessActivity
from queryprof.model.places import Frame
from queryprof.region import live
from queryprof.region.live import ActivityReader, pid_filter, trace_path_filter
from queryprof.region.region import Region
from queryprof.report.places import Places
from queryprof.report.terminal.top import statement_place

pytestmark = pytest.mark.once

SECOND = 10**9

LONGEST_S = 60
"""The longest wait for an event."""

BUSY = """
import os, sqlite3, sys, time
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
def load(number):
    return db.execute("SELECT b FROM t WHERE a = ?", (number,)).fetchone()
def steadily():
    load(1)
print("begun", flush=True)
while not os.path.exists("end"):
    for _ in range(100):
        steadily()
    time.sleep(0.01)
"""


@contextmanager
def running(script: Callable[[str], Path]) -> Iterator[subprocess.Popen[str]]:
    """Run the program until the block ends."""
    command = [QUERYPROF, "run", "--no-report", "-o", "x.qprof", script(BUSY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        try:
            yield program
        finally:
            Path("end").touch()
        assert program.wait(LONGEST_S) == 0


def test_looks_add_up_to_the_trace(script: Callable[[str], Path]) -> None:
    """This holds for looks at any time. The process that ends is reported once."""
    watch, seen, ended = ActivityReader(trace_path_filter("x.qprof")), 0, 0

    def look() -> None:
        nonlocal seen, ended
        for process in watch.read_activity():
            seen += sum(a.calls for a in process.activities if a.statement.startswith("SELECT"))
            ended += process.has_ended

    rest = "print('waits', flush=True); sys.stdin.readline()"
    command = [QUERYPROF, "run", "--no-report", "-o", "x.qprof", script(BUSY + rest)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        looks, end_s = 0, time.monotonic() + LONGEST_S
        while looks < 5 and time.monotonic() < end_s:
            before = seen
            look()
            looks += seen > before
        assert looks == 5
        Path("end").touch()
        assert program.stdout.readline() == "waits\n"
        look()
        seen_while_it_waits = seen
        program.stdin.write("\n")
        program.stdin.close()
        assert program.wait(LONGEST_S) == 0
    look()
    assert watch.read_activity() == []
    recorded = sum(
        a.count for a in read_profile("x.qprof").aggregates if a.statement.startswith("SELECT")
    )
    assert ended == 1
    # The trace may have more: calls in progress that were not added up.
    assert recorded - 100 <= seen_while_it_waits <= seen <= recorded


@pytest.mark.slow
def test_a_look_has_lines_callers_and_rates(queryprof: Run, script: Callable[[str], Path]) -> None:
    with running(script):
        line = queryprof("top", "x.qprof", "--format", "json", "--once").stdout
        found = json.loads(line)
        (process,) = found["processes"]
        (select_,) = [one for one in found["statements"] if one["statement"].startswith("SELECT")]
        assert select_["frame"]["function"] == "load"
        assert [frame["function"] for frame in select_["callers"]] == ["steadily", "<module>"]
        assert 0 < select_["executions_per_s"] < 100 / 0.01
        assert 0 < process["busy"] < 1
        assert select_["vm_steps"] > 3
        command = ("top", str(process["pid"]), "--once", "--every", "200ms")
        shown = queryprof(*command, env={"COLUMNS": "80"}).stdout
        assert "load() program.py:6" in shown
        assert all(len(each) <= 80 for each in shown.splitlines())
        assert (
            "No process is being recorded"
            in queryprof("top", "other.qprof", "--once", "--every", "50ms").stdout
        )


def test_bad_input_is_one_line(queryprof: Run) -> None:
    gone = queryprof("top", "4194305")
    assert (gone.returncode, gone.stderr) == (2, "queryprof: top: no running process 4194305\n")
    assert queryprof("top", "--every", "soon").returncode == 2


class Screen:
    """A `queryprof top` in its own terminal."""

    def __init__(self, columns: int) -> None:
        self._file, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLUMNS": str(columns),
            "LINES": "24",
        }
        command = [QUERYPROF, "top", "x.qprof", "--every", "200ms"]
        self._process = subprocess.Popen(
            command,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment,
            start_new_session=True,
        )
        os.close(terminal)

    def kill(self) -> None:
        self._process.kill()

    def until(self, text: str, timeout_s: float = LONGEST_S) -> str:
        """Return its output up to a text."""
        shown, end = "", time.monotonic() + timeout_s
        while text not in shown:
            assert time.monotonic() < end, shown[-2000:]
            if select.select([self._file], [], [], 0.1)[0]:
                shown += os.read(self._file, 65536).decode("utf-8", "replace")
        return shown

    def press(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    def leave(self) -> None:
        """Close the terminal. It must end by itself."""
        os.close(self._file)
        self._process.wait(LONGEST_S)

    def status(self) -> int:
        """Return its exit status."""
        while True:  # its remaining output must be read
            try:
                if not os.read(self._file, 65536):
                    break
            except OSError:
                break
        os.close(self._file)
        return self._process.wait(LONGEST_S)


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.repeats
def test_keys(script: Callable[[str], Path], columns: int) -> None:
    """Keys sort, pause, show more and quit. The terminal is restored."""
    with running(script):
        screen = Screen(columns)
        screen.until("load()")
        screen.press("s")
        screen.until("by executions")
        screen.press("p")
        shown = screen.until("(paused)")
        while shown.count("(paused)") < 4:
            shown += screen.until("(paused)")
        # A paused screen is drawn again, with the same figures.
        assert len(set(shown.split("(paused)")[1:4])) == 1
        screen.press("p\r")
        screen.until("called by steadily()" if columns > 80 else "load() /")
        screen.until("SEARCH t USING INTEGER PRIMARY KEY")
        screen.press("q")
        assert screen.status() == 0


def test_it_ends_with_its_terminal(script: Callable[[str], Path]) -> None:
    """It ends even without a signal, in its own session."""
    with running(script):
        screen = Screen(80)
        screen.until("load()")
        screen.leave()


def test_a_killed_top_leaves_the_trace_whole(script: Callable[[str], Path]) -> None:
    with running(script):
        screen = Screen(80)
        screen.until("load()")
        screen.kill()
        assert screen.status() == -signal.SIGKILL
    profile = read_profile("x.qprof")
    assert all(process.clean_end for process in profile.processes)
    assert sum(a.count for a in profile.aggregates if a.operation == "execute") > 100


def test_a_process_that_is_no_ones_business(script: Callable[[str], Path]) -> None:
    """It belongs to another trace, or is this process."""
    import queryprof as library

    with running(script), library.profile():
        assert ActivityReader(trace_path_filter("other.qprof")).read_activity() == []
        assert ActivityReader(pid_filter(os.getpid())).read_activity() == []


LOCKED = """
import sqlite3, sys, threading
from core.work_programs import until_refused
def connect():
    return sqlite3.connect("shop.db", timeout=60, isolation_level=None)
def write():
    with connect() as db:
        begins.set()
        db.execute("BEGIN IMMEDIATE")
        db.execute("COMMIT")
begins, other = threading.Event(), threading.Thread(target=write)
holder = connect()
holder.execute("BEGIN IMMEDIATE")
other.start()
begins.wait()
until_refused(f"self/task/{other.native_id}")
holder.execute("COMMIT")
other.join()
print("begun", flush=True)
sys.stdin.readline()
"""


def test_locks_of_the_last_minute(
    script: Callable[[str], Path], queryprof: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are shown also if they were released before top started."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    program = [QUERYPROF, "run", "--no-report", "-o", "x.qprof", script(LOCKED)]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        shown = queryprof("top", "--once", "--every", "50ms", "x.qprof").stdout.splitlines()
        process.communicate("\n")
    (place,) = (n for n, line in enumerate(shown) if line.startswith("write lock of shop.db"))
    assert ", 1 call waited █ (longest " in shown[place]
    assert "█" in shown[place + 1]
    assert set(shown[place + 1]) <= {"·", "▒", "█"}


def activity(statement: str, operation: str, calls: int, ns: int, steps: int = 0) -> Activity:
    path = (Frame("f", "/a.py", 3), Frame("g", "/a.py", 9))
    return Activity(statement, path, operation, calls, ns, ns, calls if steps else 0, steps)


def test_shares_and_rates_are_of_the_interval() -> None:
    """Several processes each have their own."""
    one = ProcessActivity(
        1,
        ("a",),
        "/",
        False,
        2 * SECOND,
        (activity("SELECT", "execute", 4, SECOND, 400), activity("SELECT", "fetchone", 8, SECOND)),
        (),
    )
    two = ProcessActivity(
        2, ("b",), "/", True, SECOND, (activity("SELECT", "execute", 1, SECOND),), ()
    )
    (found,) = combine_activity([one, two]).statements
    assert found.busy == 2.0
    assert found.executions_per_s == 3.0
    assert found.mean_ns == 3 * SECOND / 5
    assert found.vm_steps == 100
    for sort in SORT_KEYS:
        assert combine_activity([one], sort).statements[0].statement == "SELECT"


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (25, "customers_of_… shop.py:51"),
        (36, "customers_of_the_region() shop.py:51"),
        (35, "customers_of_the_region… shop.py:51"),
        (43, "customers_of_the_region() shop.py:51"),
        (44, "customers_of_the_region() shop.py:51 <- report()"),
        (5, "c… shop.py:51"),
    ],
)
def test_a_narrow_place_keeps_its_line(columns: int, shown: str) -> None:
    frame = Frame("customers_of_the_region", "/srv/shop.py", 51)
    one = BusyStatement("SELECT", frame, (Frame("report", "/srv/shop.py", 9),), 1, 1, 1, 1)
    assert statement_place(one, Places(Profile((), ())), columns) == shown


def test_what_is_over_is_opened_once(
    script: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recordings left by killed processes do not slow down each look."""
    killed = script(
        "import os, sqlite3, queryprof\nqueryprof.install()\n"
        "sqlite3.connect(':memory:').execute('SELECT 1')\nos.kill(os.getpid(), 9)"
    )
    process = subprocess.Popen([sys.executable, killed])
    process.wait()
    opened = []

    def counted(**options: Any) -> Region:
        region = Region(**options)
        opened.append((region["pid"], *options.values()))
        return region

    monkeypatch.setattr(live, "Region", counted)
    watch = ActivityReader()
    for _ in range(3):
        watch.read_activity()
    watch.close()
    ours = [one for one in opened if one[0] == process.pid]  # and those of an earlier process
    assert ours
    assert len(ours) == len(set(ours))
