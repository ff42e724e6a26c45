"""A JOIN for queries in a loop: the join column, in a recorded program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import QUERYPROF
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.findings.lookup import findings_of
from queryprof.proof.prove import prove

pytestmark = pytest.mark.once

BUYERS = """
import sqlite3
db = sqlite3.connect("buyers.db")
db.executescript(
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name); CREATE TABLE sale (id INTEGER PRIMARY KEY, buyer, year)"
)
db.executemany("INSERT INTO people VALUES (?, ?)", ((n, f"p{n}") for n in range(1, 60)))
db.executemany("INSERT INTO sale (buyer, year) VALUES (?, ?)", ((n * 7 % 59 + 1, n % 9) for n in range(2000)))
db.commit()
def names():
    for _, buyer, _ in db.execute("SELECT id, buyer, year FROM sale").fetchall():
        db.execute("SELECT name FROM people WHERE id = ?", (buyer,)).fetchone()
def years():
    for _, buyer, year in db.execute("SELECT id, buyer, year FROM sale WHERE id > ?", (0,)).fetchall():
        db.execute("SELECT id, buyer FROM sale WHERE year = ? AND id = ?", (year, buyer)).fetchone()
names()
years()
"""


@pytest.mark.parametrize("parameters", [[], ["--parameters"]])
@pytest.mark.repeats
def test_a_join_is_by_the_column_that_was_passed(tmp_path: Path, parameters: list[str]) -> None:
    """Most columns contain numbers of one table. A value that differs twice per row is
    not joined.
    """
    (tmp_path / "app.py").write_text(BUYERS)
    command = [QUERYPROF, "run", "--no-report", *parameters, "-o", "t.qprof", "app.py"]
    subprocess.run(command, check=True, cwd=tmp_path)
    report = Report(read_profile(str(tmp_path / "t.qprof")))
    database = str(tmp_path / "buyers.db")
    found = findings_of(report, [database])
    assert [
        one.parent for one in found if one.category == "n_plus_one" and "people" in one.statement
    ] == ["SELECT id, buyer, year FROM sale"]
    advice = prove(report, database, 3600, sys.executable, found)
    assert all(
        "outer_buyer" in one.sql for one in advice.rewrites if "FROM people" in one.statement
    )
    assert [one for one in advice.rewrites if "year = ?" in one.statement] == []
