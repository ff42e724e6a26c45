"""Find indexes that another index makes redundant."""

from __future__ import annotations

import sqlite3

import pytest

import queryprof

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("kind", "where", "is_found"),
    [("", "", True), ("UNIQUE", "", False), ("", "WHERE b > 7", False)],
)
def test_an_index_that_does_more_than_find_rows_stays(
    kind: str, where: str, is_found: bool
) -> None:
    """A UNIQUE index also rejects rows, and a partial index is small."""
    connection = sqlite3.connect("t.db")
    connection.executescript(
        f"CREATE TABLE t (a, b); CREATE {kind} INDEX t_a ON t (a) {where};"
        " CREATE INDEX t_a_b ON t (a, b)"
    )
    with queryprof.profile() as recording:
        for number in range(3000):
            connection.execute("INSERT INTO t VALUES (?, 1)", (number,))
        connection.execute("SELECT b FROM t WHERE a = 3").fetchall()
        connection.commit()
    connection.close()
    found = [one.category for one in recording.findings]
    assert ("redundant_index" in found) is is_found
