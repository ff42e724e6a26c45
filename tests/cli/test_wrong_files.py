"""Files of the wrong kind, and paths that lead nowhere: one line, and exit status 2."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

import queryprof
from conftest import Run

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("top nowhere", "nowhere: no such process, trace or directory"),
        ("top notes.txt", "notes.txt: not a queryprof trace"),
        ("locks notes.txt", "notes.txt: not a SQLite database or a trace"),
        ("run notes.txt", "notes.txt: neither a command nor a Python script"),
        ("run folder", "folder: is a directory without __main__.py"),
        ("run ./folder", "./folder: is a directory without __main__.py"),
        ("report a.qprof b.qprof", "report reads one trace; to read several together, merge them"),
        ("merge notes.txt x.qprof", "notes.txt: exists and is not a queryprof trace"),
        ("analyze x.qprof --db folder", "folder: not a file"),
        ("analyze x.qprof --db nowhere.db", "nowhere.db: no such file"),
        ("analyze job.py", "job.py: not a queryprof trace; to record one: queryprof run job.py"),
        ("attach job", "'job' is not a valid process ID"),
    ],
)
def test_it_is_named(queryprof: Run, command: str, message: str) -> None:
    recorded()
    Path("notes.txt").write_text("These are notes.")
    Path("job.py").touch()
    Path("folder").mkdir()
    result = queryprof(*command.split())
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert Path("notes.txt").read_text() == "These are notes."


def test_a_process_that_is_not_recorded_is_no_error_of_the_target(queryprof: Run) -> None:
    recorded()
    for target in ("x.qprof", "later.qprof", ".", str(os.getpid())):
        result = queryprof("top", target, "--once", "--every", "50ms")
        assert result.returncode == 0, target
        assert "No process is being recorded" in result.stdout


def test_a_lock_on_another_file_is_shown(queryprof: Run) -> None:
    """It may be an encrypted database."""
    Path("notes.txt").write_text("These are notes.")
    with Path("notes.txt").open("rb+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        result = queryprof("locks", "notes.txt")
    assert result.returncode == 0
    assert f"process {os.getpid()}" in result.stdout
    assert "notes.txt: not a SQLite database, or encrypted" in result.stderr
    Path("empty.db").touch()
    assert queryprof("locks", "empty.db").stderr == ""


@pytest.mark.parametrize("value", ["nowhere/", "nowhere/x.qprof"])
def test_a_missing_directory_is_named_at_the_start(value: str) -> None:
    """A service in windows may run for months."""
    code = "import os, sys, queryprof; print('started', file=sys.stderr, flush=True); os._exit(0)"
    startup = next(iter(queryprof.startup.__path__))
    environment = {
        **os.environ,
        "QUERYPROF": value,
        "QUERYPROF_WINDOW": "5m",
        "PYTHONPATH": startup,
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, started = done.stderr.splitlines()
    folder = Path("nowhere").resolve()
    assert first == f"queryprof: no directory {folder}: create it before this process ends"
    assert started == "started"


def recorded() -> None:
    """Write x.qprof."""
    import sqlite3

    with queryprof.profile("x.qprof"):
        connection = sqlite3.connect(":memory:")
        connection.execute("SELECT 1")
        connection.close()
