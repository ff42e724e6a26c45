"""Programs compiled with Nuitka: they run as before, and their lines are unknown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Run
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.compat

LIBRARY = """
def inner(connection, number):
    return connection.execute("SELECT ?", (number,)).fetchone()


def outer(connection):
    for number in range(10):
        assert inner(connection, number) == (number,)
    return inner(
        connection, 11
    )
"""
PROGRAM = """
import sqlite3
import compiled

assert compiled.outer(sqlite3.connect(":memory:")) == (11,)
"""


def test_lines_are_unknown(queryprof: Run) -> None:
    """Their code objects name a line, but not the line of the call."""
    pytest.importorskip("nuitka")
    Path("compiled.py").write_text(LIBRARY)
    command = [sys.executable, "-m", "nuitka", "--module", "compiled.py"]
    subprocess.run([*command, "--assume-yes-for-downloads"], check=True, capture_output=True)
    Path("compiled.py").unlink()
    Path("program.py").write_text(PROGRAM)
    result = queryprof("run", "-o", "x.qprof", "program.py")
    assert result.returncode == 0, result.stderr
    executions = [a for a in read_profile("x.qprof").aggregates if a.operation == "execute"]
    assert sum(a.count for a in executions) == 11
    for aggregate in executions:
        places = [(frame.function, frame.line) for frame in aggregate.path]
        assert places == [("inner", 0), ("outer", 0), ("<module>", 5)]
    assert "inner() compiled.py:?  <- outer() compiled.py:?" in result.stderr
