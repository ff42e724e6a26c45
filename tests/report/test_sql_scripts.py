"""A migration and its reversal."""

from __future__ import annotations

import sqlite3

import pytest

from queryprof.model.advice import Advice, DatabaseChange
from queryprof.report.findings.sql_script import sql_script

pytestmark = pytest.mark.once


def test_what_was_made_last_is_taken_back_first() -> None:
    table = "CREATE TABLE t (a, b);"
    index = "CREATE INDEX i ON t (a);"
    changes = (
        DatabaseChange(table, "DROP TABLE t;", "", "t", 1.0, 1, None, 0),
        DatabaseChange(index, "DROP INDEX i;", "i", "t", 1.0, 1, None, 0),
    )
    advice = Advice("x.db", changes, (), (), (), (), "3.45", "", 1, is_complete=True, took_s=1.0)
    script = sql_script(advice)
    made, back = script.split("-- To undo it:\n")
    db = sqlite3.connect(":memory:")
    db.executescript(made)
    assert db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (2,)
    db.executescript("\n".join(line.removeprefix("-- ") for line in back.splitlines()))
    assert db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    db.close()
