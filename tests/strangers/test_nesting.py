"""What is nested deeper than any recording nests is one line of an error, not the end of Python's stack."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Run
from queryprof.trace.workload import FIXED, MAGIC

pytestmark = pytest.mark.once

PROGRAM = "import sqlite3\nsqlite3.connect('t.db').execute('SELECT 1').fetchall()\n"
DEEP = "[" * 5000


@pytest.fixture
def recorded(queryprof: Run, script: Callable[[str], Path]) -> Path:
    done = queryprof("run", "--record-workload", "--no-report", "-o", "x.qprof", script(PROGRAM))
    assert done.returncode == 0, done.stderr
    (path,) = Path.cwd().glob("x.qprof-workload-*")
    return path


def test_a_workload(queryprof: Run, recorded: Path) -> None:
    lists = (b"[" + struct.pack("=I", 1)) * 5000 + b"0"
    recorded.write_bytes(MAGIC + b"E" + FIXED.pack(1, 1, 5, 0, 0, 0, 0, 0, 0, 1) + lists)
    for command in ("replay", "tune"):
        options = ["workers"] if command == "tune" else []
        done = queryprof(command, *options, "x.qprof", "--db", "t.db")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "is damaged after" in done.stderr


@pytest.mark.parametrize("command", ["report", "analyze", "html"])
def test_a_trace(queryprof: Run, recorded: Path, command: str) -> None:
    with closing(sqlite3.connect("x.qprof")) as db:
        db.execute("UPDATE process SET argv = ?, unmeasured = ?", (DEEP, DEEP))
        db.commit()
    done = queryprof(command, "x.qprof")
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1
    del recorded
