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


def saved(path: Path, delete: str, rows: int, times: int) -> HeavyStatementCause | None:
    """Return the cause of the INSERT of a program that saves a table several times."""

    def save(db: sqlite3.Connection, rows: Iterable[tuple[int, int]]) -> None:
        db.execute(delete)
        db.executemany(INSERT, rows)

    def changed(number: int) -> Iterator[tuple[int, int]]:
        return ((key, number) for key in range(rows))

    with queryprof.profile() as recording, closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE watch (key INTEGER PRIMARY KEY, seen INTEGER)")
        with db:
            for number in range(times):
                save(db, changed(number))
    program = Program(Report(recording.profile), lambda *_: None, {})
    (group,) = (one for one in program.all_groups if one.statement == INSERT)
    return rewritten_table(program, group)


@pytest.mark.parametrize(
    ("delete", "rows", "times", "is_named"),
    [
        ("DELETE FROM watch", 20, 3, True),
        ("DELETE FROM watch", 19, 3, False),
        ("DELETE FROM watch", 20, 2, False),
        ("DELETE FROM watch WHERE key < 40", 20, 3, False),
    ],
)
def test_a_table_that_is_rewritten(
    tmp_path: Path, delete: str, rows: int, times: int, is_named: bool
) -> None:
    found = saved(tmp_path / "a.db", delete, rows, times)
    words = f"{times} DELETEs of all rows of watch, each followed by about {rows:,} INSERTs"
    assert (found.evidence if found else ()) == (words,) * is_named
