"""The note about a locked database lists the right processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import pytest

from queryprof.hooks import lock_notes

pytestmark = pytest.mark.once

READER = """
import sqlite3, sys
db = sqlite3.connect("t.db")
db.execute("BEGIN")
db.execute("SELECT * FROM t").fetchone()
print("reads", flush=True)
sys.stdin.read()
"""


def test_readers_are_those_of_other_processes() -> None:
    """The kernel also reports this process's locks: one of them is the writer's own."""
    db = sqlite3.connect("t.db")
    db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    db.execute("BEGIN")
    db.execute("SELECT * FROM t").fetchone()
    database = os.path.abspath("t.db")
    (line,) = lock_notes._reader_notes(database)
    assert line.endswith("a cursor of this process with rows left, or a transaction that has read")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", READER], text=True, **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline() == "reads\n"
        _, *named = lock_notes._reader_notes(database)
        other.communicate()
    assert [f"process {other.pid}" in line for line in named] == [True]
    db.close()
