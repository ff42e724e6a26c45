"""Programs that delete and insert all rows of a table for each change."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.heavy_causes import HeavyStatementCause
from queryprof.findings.program import Program
from queryprof.findings.rewritten_tables import rewritten_table

pytestmark = pytest.mark.once

INSERT = "INSERT INTO watch VALUES (?, ?)"
DELETE = "DELETE FROM watch"
SCHEMA = """
CREATE TABLE watch (key INTEGER PRIMARY KEY, seen INTEGER);
"""


def saved(
    path: Path,
    delete: str,
    rows: int,
    times: int,
    insert: str = INSERT,
    is_emptied_after: bool = False,
) -> HeavyStatementCause | None:
    """Return the cause of the INSERT of a program that saves a table several times."""

    def save(db: sqlite3.Connection, rows: Iterable[tuple[int, int]]) -> None:
        if not is_emptied_after:
            db.execute(delete)
        db.executemany(insert, rows)
        if is_emptied_after:
            db.execute(delete)

    def changed(number: int) -> Iterator[tuple[int, int]]:
        return ((key, number) for key in range(rows))

    with queryprof.profile() as recording, closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA)
        with db:
            for number in range(times):
                save(db, changed(number))
    program = Program(Report(recording.profile), lambda *_: None, {})
    (group,) = (one for one in program.all_groups if one.statement == insert)
    return rewritten_table(program, group)


@pytest.mark.parametrize(
    ("delete", "insert", "rows", "times", "is_named"),
    [
        (DELETE, INSERT, 20, 3, True),
        ("DELETE FROM main.watch", INSERT, 20, 3, False),  # perhaps another table
        (DELETE, INSERT, 19, 3, False),
        (DELETE, INSERT, 20, 2, False),
        ("DELETE FROM watch WHERE key < 40", INSERT, 20, 3, False),
        (DELETE, "INSERT INTO watch SELECT ?, ?", 20, 3, False),  # SQL computes the rows
    ],
)
def test_a_table_that_is_rewritten(
    tmp_path: Path, delete: str, insert: str, rows: int, times: int, is_named: bool
) -> None:
    found = saved(tmp_path / "a.db", delete, rows, times, insert)
    words = f"{times} times, the program deletes all rows of watch and inserts about {rows:,} rows"
    assert (found.evidence if found else ()) == (words,) * is_named


def test_rows_that_are_deleted_after_they_are_inserted(tmp_path: Path) -> None:
    """The table is a buffer: all of its rows are new."""
    assert saved(tmp_path / "a.db", DELETE, 20, 3, is_emptied_after=True) is None


@pytest.mark.parametrize(("rows", "is_named"), [(36, True), (35, False)])
def test_a_table_that_was_mostly_empty(tmp_path: Path, rows: int, is_named: bool) -> None:
    """Three writes have 20 rows each. `DELETE FROM watch` deletes `rows` of these 60."""
    with queryprof.profile() as recording, closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.executescript(SCHEMA)

        def save(number: int) -> None:
            db.execute(DELETE)
            db.executemany(INSERT, [(key, number) for key in range(20)])

        for number in range(3):
            save(number)
            if number < 2:
                lost = (40 - rows + number) // 2
                db.execute("DELETE FROM watch WHERE key < ?", (lost,))
    program = Program(Report(recording.profile), lambda *_: None, {})
    (group,) = (one for one in program.all_groups if one.statement == INSERT)
    assert (rewritten_table(program, group) is not None) == is_named
