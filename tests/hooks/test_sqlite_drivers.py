"""The drivers of SQLite that programs use: exact counts, and SQLite's counters if available.

docs/drivers.md shows what is known with each driver; QUERYPROF_GOLDEN=write updates it.
QUERYPROF_DRIVERS is a folder with a folder for each driver that would replace another one
(requirements-drivers.txt).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import Run
from queryprof.collect.reader import read_profile
from queryprof.model import Profile

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "drivers.md"
HEAD = "| package | calls | rows fetched | rows changed | VM steps | query plans |"
OTHERS = (ROOT / "requirements-drivers.txt").read_text().split()
WRITE = os.environ.get("QUERYPROF_GOLDEN") == "write"
FOLDERS = os.environ.get("QUERYPROF_DRIVERS", "")
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
ASYNC_WORK = f"""
import aiosqlite, asyncio

async def main():
    async with aiosqlite.connect(":memory:") as connection:
        await connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
        rows = [(n, n + 1) for n in range(7)]
        await connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        for number in range({TIMES}):
            cursor = await connection.execute("{QUERY}", (1,))
            assert await cursor.fetchone() == (2,)

asyncio.run(main())
"""
CONNECTS = {
    "sqlite3": "import sqlite3\nconnection = sqlite3.connect(':memory:')",
    "apsw": "import apsw\nconnection = apsw.Connection(':memory:')",
    "pysqlite3": "import pysqlite3\nconnection = pysqlite3.connect(':memory:')",
    "sqlcipher3": "import sqlcipher3\nconnection = sqlcipher3.connect(':memory:')",
    "sqlean": "import sqlean\nconnection = sqlean.connect(':memory:')",
    "libsql": "import libsql\nconnection = libsql.connect(':memory:')",
}
PACKAGES = {
    "sqlite3": "sqlite3",
    "aiosqlite": "aiosqlite",
    "apsw": "apsw",
    "pysqlite3-binary": "pysqlite3",
    "sqlcipher3-binary": "sqlcipher3",
    "sqlean.py": "sqlean",
    "libsql": "libsql",
    **{requirement: re.split("[-=]", requirement)[0] for requirement in OTHERS},
}
"""The module of each package. A package with a version is in its own folder."""


class RecordedFigures(NamedTuple):
    """The recorded figures of the program's work."""

    calls: int
    fetched: int
    changed: int
    vm_steps: int
    plans: int

    def row(self, package: str) -> str:
        """Return the row of the table. Calls and fetched rows must be exact."""
        known = ["exact", "exact"]
        known += ["exact" if n else "unknown" for n in (self.changed, self.vm_steps)]
        known += ["read" if self.plans else "not read"]
        return f"| `{package}` | {' | '.join(known)} |"


def recorded_figures(profile: Profile) -> RecordedFigures:
    rows = [a for a in profile.aggregates if a.statement == QUERY]
    executions = sum(a.count for a in rows if a.operation == "execute")
    counted = sum(a.counted for a in rows)
    steps = sum(a.vm_steps for a in rows)
    assert counted in (0, executions)
    assert steps % executions == 0
    return RecordedFigures(
        executions,
        sum(a.rows for a in rows if a.operation == "fetchone"),
        sum(a.rows for a in profile.aggregates if a.statement.startswith("INSERT")),
        steps // executions,
        sum(plan.statement == QUERY for plan in profile.plans),
    )


def recorded(queryprof: Run, program: str) -> Profile:
    Path("program.py").write_text(program)
    result = queryprof("run", "--no-report", "-o", "x.qprof", "program.py")
    assert (result.returncode, result.stderr) == (0, "")
    return read_profile("x.qprof")


DOCTORS: dict[str, str] = {}
"""The output of the command, by PYTHONPATH."""


def doctor_on(queryprof: Run, driver: str) -> str:
    folder = os.environ.get("PYTHONPATH", "")
    if folder not in DOCTORS:
        DOCTORS[folder] = queryprof("doctor").stdout
    lines = DOCTORS[folder].splitlines()
    return next(line for line in lines if line.startswith(f"{driver:<11} "))


def row_in_the_page(package: str, row: str) -> str:
    """Return the page's row of a package, after writing it on request."""
    text = PAGE.read_text()
    before, table = text.split(f"{HEAD}\n", 1)
    rule, *rows = table.split("\n\n", 1)[0].splitlines()
    by_package = {line.split("`")[1]: line for line in rows}
    if WRITE:
        by_package[package] = row
        ordered = [by_package[name] for name in PACKAGES if name in by_package]
        rest = table.split("\n\n", 1)[1]
        PAGE.write_text("\n".join([f"{before}{HEAD}", rule, *ordered, "", rest]))
    return by_package.get(package, "")


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.repeats
def test_a_thousand_queries(queryprof: Run, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    module = PACKAGES[package]
    if package in OTHERS:
        folder = Path(FOLDERS, package)
        if not FOLDERS or not folder.is_dir():
            pytest.skip(f"{package} is not in QUERYPROF_DRIVERS")
        monkeypatch.setenv("PYTHONPATH", str(folder))
    elif importlib.util.find_spec(module) is None:
        pytest.skip(f"{package} is not installed")
    program = ASYNC_WORK if module == "aiosqlite" else CONNECTS[module] + WORK
    found = recorded_figures(recorded(queryprof, program))
    assert (found.calls, found.fetched) == (TIMES, TIMES)
    assert found.changed in (0, 7)
    assert row_in_the_page(package, found.row(package)) == found.row(package)
    if module != "aiosqlite":
        version = package.partition("==")[2]
        line = doctor_on(queryprof, module)
        assert re.search(rf"{module}  .*{re.escape(version)}.*, measured$", line, re.IGNORECASE), (
            line
        )


@pytest.mark.parametrize("name", [name for name in CONNECTS if name != "libsql"])
@pytest.mark.repeats
def test_an_executemany_is_one_sample_of_its_page_fetches(queryprof: Run, name: str) -> None:
    """This holds even if SQLite reports the end of each of its rows."""
    pytest.importorskip(name)
    work = """
connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
for number in range(200):
    connection.cursor().executemany("INSERT INTO t (b) VALUES (?)", [(n,) for n in range(8)])
"""
    profile = recorded(queryprof, CONNECTS[name] + work)
    (insert,) = [a for a in profile.aggregates if a.operation == "executemany"]
    assert (insert.count, insert.counted) == (200, 200)
    assert 0 < insert.page_fetch_samples < 60  # 12.5 are expected
    assert insert.page_fetches >= 8 * insert.page_fetch_samples


def test_all_in_one_process(queryprof: Run) -> None:
    """Each has its own SQLite, and all are counted."""
    here = [name for name in CONNECTS if importlib.util.find_spec(name)]
    profile = recorded(queryprof, "".join(CONNECTS[name] + WORK for name in here))
    rows = [a for a in profile.aggregates if (a.statement, a.operation) == (QUERY, "execute")]
    assert [a.count for a in rows] == [TIMES] * len(here)
    counted = sorted(a.counted for a in rows)
    assert counted == sorted(0 if name == "libsql" else TIMES for name in here)


def test_in_place_of_sqlite3(queryprof: Run) -> None:
    """Programs that need a newer SQLite do this."""
    pytest.importorskip("pysqlite3")
    replaced = "import sys, pysqlite3\nsys.modules['sqlite3'] = pysqlite3\n"
    found = recorded_figures(recorded(queryprof, replaced + CONNECTS["sqlite3"] + WORK))
    assert (found.calls, found.fetched, found.vm_steps > 0) == (TIMES, TIMES, True)


def test_naming_what_is_known_changes_nothing(queryprof: Run) -> None:
    pytest.importorskip("apsw")
    named = "import queryprof\nqueryprof.instrument('apsw')\n"
    found = recorded_figures(recorded(queryprof, named + CONNECTS["apsw"] + WORK))
    assert (found.calls, found.vm_steps > 0) == (TIMES, True)
