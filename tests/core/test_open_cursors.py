"""Cursors that stay open while many others are opened."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import queryprof
from conftest import by_operation

pytestmark = pytest.mark.once

CURSORS = 8000
"""Twice as many as are remembered."""


@pytest.mark.parametrize("is_exhausted", [False, True])
def test_a_cursor_in_use_is_not_forgotten(is_exhausted: bool) -> None:
    """An object mapper may keep the cursor of each query that it makes for a row."""
    rows = "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < ?) SELECT a FROM n"
    with queryprof.profile() as recording, closing(sqlite3.connect(":memory:")) as db:
        kept = []
        for (number,) in db.execute(rows, (CURSORS,)):
            kept.append(db.execute("SELECT ? UNION ALL SELECT 2", (number,)))
            kept[-1].fetchall() if is_exhausted else kept[-1].fetchone()
    calls = by_operation(recording.profile)
    assert "(unknown)" not in {statement for statement, _ in calls}
    assert (
        sum(count for (_, operation), count in calls.items() if operation == "next") == CURSORS + 1
    )
