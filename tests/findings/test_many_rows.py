"""Queries whose time goes into the rows that they return."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.finding import Severity
from queryprof.findings.heavy_causes import HeavyStatementCause
from queryprof.findings.many_rows import cause_of_many_rows
from queryprof.findings.program import Program

pytestmark = pytest.mark.once

HISTORY = "SELECT q.text, r.at FROM result AS r JOIN query AS q ON q.id = r.query WHERE r.who = 1"


def cause_of_history(
    path: Path, rows: int = 1_000, reads: int = 5, others: int = 0, after: str = ""
) -> HeavyStatementCause | None:
    """Return the cause of a query that reads a history, to which the program adds rows.

    Args:
        others: the rows of another user per row of this user, which the query also reads.
        after: what the program executes at its end.
    """
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE query (id INTEGER PRIMARY KEY, text TEXT)")
        db.execute("CREATE TABLE result (query INTEGER, who INTEGER, at INTEGER)")
        db.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
        db.executemany("INSERT INTO query VALUES (?, 'q')", [(key,) for key in range(rows)])
        every = [(key, who, 0) for key in range(rows) for who in (1, *[2] * others)]
        db.executemany("INSERT INTO result VALUES (?, ?, ?)", every)
        db.commit()
    with queryprof.profile() as recording, closing(sqlite3.connect(path)) as db:
        for number in range(reads):
            db.execute(HISTORY).fetchall()
            db.execute("INSERT INTO result VALUES (-1, 1, ?)", (number,))
        db.execute(after)
        db.commit()
    program = Program(Report(recording.profile), lambda *_: None, {})
    group = next(one for one in program.all_groups if one.statement.startswith("SELECT"))
    return cause_of_many_rows(program, group)


@pytest.mark.parametrize(
    ("rows", "others", "is_named"),
    [(1_000, 0, True), (999, 0, False), (1_000, 1, True), (1_000, 3, False)],
)
def test_a_query_that_does_little_more_than_return_its_rows(
    tmp_path: Path, rows: int, others: int, is_named: bool
) -> None:
    """It is not named if most of the rows that it reads belong to others."""
    found = cause_of_history(tmp_path / "a.db", rows, others=others)
    assert bool(found) == is_named
    if found:
        assert "VM steps per returned row" in found.evidence[0]


@pytest.mark.parametrize(
    ("reads", "after", "grows"),
    [
        (5, "", True),
        (4, "", False),
        (5, "DELETE FROM result WHERE at < 0", False),
        (5, "DELETE FROM other", True),
    ],
)
def test_a_table_that_only_grows(tmp_path: Path, reads: int, after: str, grows: bool) -> None:
    found = cause_of_history(tmp_path / "a.db", reads=reads, after=after)
    assert found is not None
    assert ("the program adds rows to result and deletes none" in found.evidence[0]) == grows
    assert ("Delete or archive old rows" in found.fix) == grows
    assert found.most is (Severity.MEDIUM if grows else Severity.LOW)
