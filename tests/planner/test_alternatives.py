"""Comparisons of which one is enough (OR): an index on each finds exactly the returned rows."""

from __future__ import annotations

import sqlite3

import apsw  # noqa: F401  another SQLite version in the process
import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.lookup import findings_of
from queryprof.planner import planner

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine finds the same."""
    monkeypatch.setattr(planner, "BUDGET_S", 60)


@pytest.mark.parametrize(
    ("condition", "is_sure"),
    [
        ("email = ? OR phone = ?", True),
        ("(email = ? OR phone = ?) AND note = ?", False),
        ("NOT (email = ? OR phone = ?)", False),
    ],
)
def test_an_index_for_the_other_column(condition: str, is_sure: bool) -> None:
    connection = sqlite3.connect("people.db")
    connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, email, phone, note)")
    connection.execute("CREATE INDEX person_email ON person (email)")
    rows = [(f"e{n}", f"p{n}", f"n{n}") for n in range(20_000)]
    connection.executemany("INSERT INTO person (email, phone, note) VALUES (?, ?, ?)", rows)
    connection.commit()
    sql = f"SELECT id FROM person WHERE {condition}"
    with queryprof.profile() as recording:
        for number in range(50):
            connection.execute(sql, (f"e{number}",) * sql.count("?")).fetchall()
    connection.close()
    found = [one for one in findings_of(Report(recording.profile)) if one.statement == sql]
    sure = [one for one in found if "ON person (phone)" in one.code and not one.doubt]
    assert bool(sure) == is_sure, found
