"""The drivers of SQLite that programs use: exact counts, and SQLite's counters where it can tell."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from conftest import Run
from queryprof.model import Profile
from queryprof.trace.reader import read_profile

pytestmark = pytest.mark.once

PAGE = Path(__file__).parent.parent.parent / "docs" / "drivers.md"
TIMES = 1000
QUERY = "SELECT b FROM t WHERE a = ?"
WORK = f"""
connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(n, n + 1) for n in range(7)])
for number in range({TIMES}):
    row = connection.execute("{QUERY}", (1,)).fetchone()
    assert row == (2,)
connection.close()
"""
DRIVERS = {
    "sqlite3": "import sqlite3\nconnection = sqlite3.connect(':memory:')",
    "apsw": "import apsw\nconnection = apsw.Connection(':memory:')",
    "pysqlite3": "import pysqlite3\nconnection = pysqlite3.connect(':memory:')",
    "sqlcipher3": "import sqlcipher3\nconnection = sqlcipher3.connect(':memory:')",
    "sqlean": "import sqlean\nconnection = sqlean.connect(':memory:')",
    "libsql": "import libsql\nconnection = libsql.connect(':memory:')",
}


def asked(profile: Profile) -> tuple[int, int, int]:
    """Executions of the query, fetches, and the steps of each execution; 0: unknown."""
    rows = [a for a in profile.aggregates if a.statement == QUERY]
    executions = sum(a.count for a in rows if a.operation == "execute")
    counted = sum(a.counters.counted for a in rows)
    steps = sum(a.counters.vm_steps for a in rows)
    assert counted in (0, executions)
    assert steps % executions == 0
    return (
        executions,
        sum(a.count for a in rows if a.operation == "fetchone"),
        steps // executions,
    )


def recorded(queryprof: Run, program: str) -> Profile:
    Path("program.py").write_text(program)
    result = queryprof("run", "--no-report", "-o", "x.qprof", "program.py")
    assert (result.returncode, result.stderr) == (0, "")
    return read_profile("x.qprof")


def doctor_on(queryprof: Run, driver: str) -> str:
    lines = queryprof("doctor").stdout.splitlines()
    return next(line for line in lines if line.startswith(f"{driver:<11} "))


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_thousand_queries(queryprof: Run, driver: str) -> None:
    if importlib.util.find_spec(driver) is None:
        pytest.skip(f"{driver} is not installed")
    profile = recorded(queryprof, DRIVERS[driver] + WORK)
    executions, fetches, steps = asked(profile)
    assert (executions, fetches) == (TIMES, TIMES)
    assert (steps > 0) == (driver != "libsql")
    inserted = [a.rows for a in profile.aggregates if a.statement.startswith("INSERT")]
    tells = driver not in ("apsw", "libsql")
    assert inserted == [7 if tells else 0]
    line = doctor_on(queryprof, driver)
    assert re.search(rf"{driver}  .*, measured$", line, re.IGNORECASE), line
    assert f"`{driver}`" in PAGE.read_text()


def test_all_in_one_process(queryprof: Run) -> None:
    """Each has a SQLite for itself, and each of those is counted."""
    here = [name for name in DRIVERS if importlib.util.find_spec(name)]
    profile = recorded(queryprof, "".join(DRIVERS[name] + WORK for name in here))
    rows = [a for a in profile.aggregates if (a.statement, a.operation) == (QUERY, "execute")]
    assert [a.count for a in rows] == [TIMES] * len(here)
    counted = sorted(a.counters.counted for a in rows)
    assert counted == sorted(0 if name == "libsql" else TIMES for name in here)


def test_in_place_of_sqlite3(queryprof: Run) -> None:
    """As programs do it that need a newer SQLite."""
    pytest.importorskip("pysqlite3")
    replaced = "import sys, pysqlite3\nsys.modules['sqlite3'] = pysqlite3\n"
    executions, fetches, steps = asked(recorded(queryprof, replaced + DRIVERS["sqlite3"] + WORK))
    assert (executions, fetches, steps > 0) == (TIMES, TIMES, True)


def test_naming_what_is_known_changes_nothing(queryprof: Run) -> None:
    pytest.importorskip("apsw")
    named = "import queryprof\nqueryprof.instrument('apsw')\n"
    executions, _, steps = asked(recorded(queryprof, named + DRIVERS["apsw"] + WORK))
    assert (executions, steps > 0) == (TIMES, True)
