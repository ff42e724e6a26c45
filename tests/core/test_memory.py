"""The memory bound: the recorder's memory and the report stay small, whatever a program
executes.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import queryprof as qp
from conftest import QUERYPROF, Run, by_operation, only
from queryprof.collect.reader import read_profile

PROGRAM = """
import resource, sqlite3, sys
if sys.argv[1] == "on":
    import queryprof
    queryprof.install("x.qprof")
connection = sqlite3.connect(":memory:", cached_statements=0)
cursor = connection.cursor()
for i in range(100_000):
    cursor.execute(f"SELECT 1 AS column_{i}")
for i in range({repeats}):
    cursor.execute("SELECT 2")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kib(path: Path, mode: str) -> int:
    result = subprocess.run(
        [sys.executable, path, mode], capture_output=True, text=True, check=True, timeout=300
    )
    return int(result.stdout)


@pytest.mark.slow
@pytest.mark.once
def test_memory_is_bounded_with_100_000_different_statements(tmp_path: Path) -> None:
    """They take at most 32 MiB more than without recording, and every execution is still
    counted.
    """
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("{repeats}", "300_000"))
    bare, recorded = peak_kib(path, "off"), peak_kib(path, "on")
    profile = read_profile("x.qprof")
    assert recorded - bare <= 32 * 1024, f"{(recorded - bare) / 1024:.1f} MiB"
    assert sum(a.count for a in profile.aggregates if a.operation == "execute") == 400_000
    folded = sum(p.folded_statements for p in profile.processes)
    folded_calls = sum(p.folded_calls for p in profile.processes)
    assert 80_000 < folded <= by_operation(profile)["(other)", "execute"] <= folded + folded_calls
    result = subprocess.run([QUERYPROF, "report", "x.qprof"], capture_output=True, check=True)
    assert b"executions are grouped as (other)" in result.stdout


@pytest.mark.once
@pytest.mark.slow
def test_inlined_literals_are_one_statement(tmp_path: Path) -> None:
    """The texts differ only in their literals."""
    connection = sqlite3.connect(":memory:")
    with qp.profile() as recording:
        for i in range(50_000):
            connection.execute(f"SELECT {i}, 'text {i}' WHERE 1 IN ({i}, {i + 1})")
    connection.close()
    select = only(recording.profile, "SELECT ?, ? WHERE ? IN (?)")
    assert select.count == 50_000
    assert sum(p.folded_statements for p in recording.profile.processes) == 0


def test_many_cursors_at_once(queryprof: Run) -> None:
    """Open results keep their statements. Beyond the table's size, statements are unknown."""
    connection = sqlite3.connect(":memory:")
    with qp.profile() as recording:
        cursors = [connection.execute(f"SELECT 1 AS a{i % 7}") for i in range(6000)]
        for cursor in cursors:
            cursor.fetchall()
    connection.close()
    fetches = {
        statement: count
        for (statement, operation), count in by_operation(recording.profile).items()
        if operation == "fetchall"
    }
    assert sum(fetches.values()) == 6000
    assert fetches["(unknown)"] < 3000
