"""An OFFSET parameter may be 0, since SQLAlchemy always writes OFFSET.

A query that reads the whole table to select rows lacks an index, whatever its OFFSET. A query that
pages is reported for its OFFSET.
"""

from __future__ import annotations

import sqlite3

import pytest

import queryprof

pytestmark = pytest.mark.once


@pytest.fixture
def con():
    connection = sqlite3.connect("shop.db")
    connection.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, day TEXT, amount INT)")
    rows = ((f"day {n % 400}", n) for n in range(40_000))
    connection.executemany("INSERT INTO sale (day, amount) VALUES (?, ?)", rows)
    connection.commit()
    yield connection
    connection.close()


def first_of(recording):
    finding = recording.findings[0]
    return finding.category, finding.code


@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize("order", ["", " ORDER BY id"])
@pytest.mark.repeats
def test_what_chooses_by_a_scan_lacks_an_index(con, times, order):
    with queryprof.profile() as recording:
        for number in range(times):
            sql = f"SELECT * FROM sale WHERE day = ?{order} LIMIT ? OFFSET ?"
            con.execute(sql, (f"night {number}", 10, 0)).fetchall()
    assert first_of(recording) == ("full_scan", "CREATE INDEX sale_day ON sale (day);")


def test_what_is_paged_is_paged(con):
    with queryprof.profile() as recording:
        for number in range(20):
            con.execute(
                "SELECT * FROM sale ORDER BY id LIMIT ? OFFSET ?", (10, number * 2000)
            ).fetchall()
    assert first_of(recording) == ("offset_pagination", "")


def test_with_the_index_no_offset_is_reported(con):
    con.execute("CREATE INDEX sale_day ON sale (day)")
    with queryprof.profile() as recording:
        for number in range(5):
            con.execute(
                "SELECT * FROM sale WHERE day = ? LIMIT ? OFFSET ?", (f"day {number}", 10, 0)
            ).fetchall()
    assert "offset_pagination" not in [one.category for one in recording.findings]
