"""`queryprof last`: which processes it reads, which period it shows, and what it prints."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from analysis.by_hand import MAIN, aggregate, golden, process, profile_of
from analysis.test_recent import OTHER, S, call, loop

from conftest import Run
from queryprof.analysis.recent import Period, recent_activity
from queryprof.analysis.report import Report
from queryprof.model import LockEvent, Profile, StallEvent, Thread
from queryprof.report.terminal.last import print_last

pytestmark = pytest.mark.once

Script = Callable[..., Path]

WAITING = """
import sqlite3, sys
connection = sqlite3.connect(":memory:")
connection.execute("SELECT 'begun'")
print("begun", flush=True)
sys.stdin.readline()
"""


@contextmanager
def waiting_process(folder: Path, trace: str) -> Iterator[int]:
    """Run a recorded program that waits until the block ends; yields its process id."""
    (folder / "waits.py").write_text(WAITING)
    with subprocess.Popen(
        [sys.executable, "waits.py"],
        cwd=folder,
        env={**os.environ, "QUERYPROF": trace},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout
        assert running.stdout.readline() == "begun\n"
        yield running.pid
        running.communicate("\n")


def test_a_trace_a_directory_a_process_or_all(
    queryprof: Run, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "traces").mkdir()
    with waiting_process(tmp_path, str(tmp_path / "traces" / "x.qprof")) as pid:
        everything = queryprof("last", "1h")  # also the processes of others, which may do more
        assert (everything.returncode, everything.stderr) == (0, "")
        assert re.search(r"calls of \d+ process", everything.stdout)
        for target in (["traces"], ["traces/x.qprof"], [pid]):
            shown = queryprof("last", "1h", *target)
            assert (shown.returncode, shown.stderr) == (0, "")
            assert "SELECT ?" in shown.stdout, target
            assert "<module> waits.py:4" in shown.stdout, target
        other = queryprof("last", os.getpid())
        assert other.returncode == 2
        assert other.stderr.endswith("is not being recorded; give a trace or a directory\n")
    assert "2 calls of 1 process" in queryprof("last", "traces/x.qprof").stdout


def test_the_period_ends_with_the_last_process_or_is_around_a_time(
    queryprof: Run, script: Script
) -> None:
    text = "import sqlite3\nsqlite3.connect(':memory:').execute('SELECT 1')\n"
    queryprof("run", "--no-report", "-o", "x.qprof", script(text))
    now = datetime.now().astimezone()
    assert "SELECT ?" in queryprof("last", "x.qprof").stdout
    around = queryprof("last", "1h", "x.qprof", "--around", f"{now:%Y-%m-%d %H:%M:%S}")
    assert "SELECT ?" in around.stdout
    earlier = queryprof("last", "1m", "x.qprof", "--around", "2001-01-01 10:00")
    assert "0 calls of 0 processes" in earlier.stdout
    assert "SELECT ?" not in earlier.stdout


def test_a_file_of_somebody_else_is_not_replaced(queryprof: Run, script: Script) -> None:
    """The command refuses before it prints."""
    Path("notes.html").write_text("mine")
    queryprof("run", "--no-report", "-o", "x.qprof", script("import sqlite3\n"))
    result = queryprof("last", "x.qprof", "--html", "notes.html")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert Path("notes.html").read_text() == "mine"
    assert queryprof("last", "x.qprof", "--html", "page.html").returncode == 0
    assert "<svg" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("5x",), "'5x' is not a duration"),
        (("0s",), "'0s' is not a duration"),
        (("nothing.qprof",), "nothing.qprof"),
        (("30s", "a.qprof", "b.qprof"), "give one TARGET, not several: a.qprof b.qprof"),
        (("--around", "noon", "a.qprof"), "'noon' is not a time; write 03:12"),
        (("99999999",), "process 99999999 is not being recorded"),
    ],
)
def test_wrong_arguments_are_one_line(
    queryprof: Run, arguments: tuple[str, ...], message: str
) -> None:
    result = queryprof("last", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_what_was_overwritten_is_said(queryprof: Run, script: Script) -> None:
    Path("pyproject.toml").write_text("[tool.queryprof]\nrecent_calls = 64\n")
    text = "import sqlite3\ndb = sqlite3.connect(':memory:')\n"
    loop_text = "for n in range(500):\n    db.execute('SELECT ?', (n,))\n"
    queryprof("run", "--no-report", "-o", "x.qprof", script(text + loop_text))
    shown = queryprof("last", "1h", "x.qprof").stdout
    assert "are not kept" in shown
    assert "64 calls of 1 process" in shown


def busy_server() -> Profile:
    """Two processes: one holds the write lock and was killed, calls of the other wait for it."""
    names = {1: "MainThread", 2: "worker"}

    def event(kind: str, number: int, start: float, s: float) -> LockEvent:
        path = (OTHER if number == 1 else MAIN,)
        text = "UPDATE stock SET pieces = ?" if number == 1 else "INSERT INTO orders VALUES (?)"
        thread = Thread(number, names[number])
        start_ns, ns = int(start * S), int(s * S)
        return LockEvent(kind, "/srv/shop.db", text, path, "", thread, "", (), start_ns, ns)

    calls = (
        call(2 * S, S // 1000, "SELECT item FROM stock WHERE id = ?", process_id=2),
        call(3 * S, int(2.5 * S), "INSERT INTO orders VALUES (?)", process_id=2, has_failed=True),
        call(6 * S, 3 * S, "INSERT INTO orders VALUES (?)", process_id=2),
        call(int(2.5 * S), S // 100, "UPDATE stock SET pieces = ?", OTHER),
        call(9 * S, None, "COMMIT", OTHER),
    )
    events = (event("write", 1, 2.5, 6.5), event("wait", 2, 3, 2.5), event("wait", 2, 6, 2.9))
    stalls = (StallEvent(OTHER, (OTHER,), (), 3 * S, 2 * S),)
    return replace(
        profile_of(aggregate("COMMIT", count=9)),
        processes=(process(1, clean_end=False), process(2)),
        recent_calls=tuple(sorted(calls, key=lambda one: one.start_unix_ns)),
        lock_events=events,
        loops=(loop(stalls),),
    )


@pytest.mark.parametrize("width", [80, 160])
def test_the_screen(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        text = io.StringIO()
        report = Report(busy_server())
        print_last(report, recent_activity(report, Period(0, 10 * S)), text, width)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert max(map(len, text.getvalue().splitlines())) <= width
    golden(f"last-{width}.txt", text.getvalue())
