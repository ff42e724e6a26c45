"""Statements whose values were not recorded are measured with values of the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from proof.counted_time import counted, proved

import queryprof as api
from queryprof.analysis.report import Report
from queryprof.proof.workload import MOST_DRAWN

pytestmark = pytest.mark.once


@pytest.mark.parametrize("reads_all", [True, False], ids=["fetchall", "may stop"])
def test_values_of_the_database_have_more_rows_than_the_program_read(
    tmp_path: Path, reads_all: bool
) -> None:
    """In another order, with other statistics. They are the same, if all of them are read."""
    path = tmp_path / "sales.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE buyer (id INTEGER PRIMARY KEY, code TEXT)")
        db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, buyer_code TEXT, amount REAL)")
        db.executemany("INSERT INTO buyer VALUES (?, ?)", [(i, f"c{i}") for i in range(300)])
        db.executemany(
            "INSERT INTO sale VALUES (?, ?, 1)", [(i, f"c{i % 300}") for i in range(9000)]
        )
        db.commit()
    query = (
        "SELECT buyer.id, amount FROM buyer JOIN sale ON buyer_code = code WHERE +buyer.id < 100"
    )

    with api.profile() as recording, closing(sqlite3.connect(path)) as db:
        for _ in range(20):
            cursor = db.execute(query)
            cursor.fetchall() if reads_all else list(cursor)
    advice = proved(Report(counted(recording.profile)), str(path))
    (proof,) = advice.proofs
    assert proof.is_drawn
    assert ("the program may stop reading before the last" in proof.doubt) != reads_all
    assert reads_all == (not proof.doubt)


@pytest.mark.parametrize("values", [MOST_DRAWN, MOST_DRAWN + 1])
def test_values_of_very_many_parameters_are_not_drawn(tmp_path: Path, values: int) -> None:
    """The statement is not measured, and the reason is said."""
    path = tmp_path / "sales.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, code TEXT, amount REAL)")
        db.executemany("INSERT INTO sale VALUES (?, ?, 1)", [(i, f"c{i}") for i in range(1500)])
        db.commit()
    chunks = [
        min(500, values - begun) for begun in range(0, values, 500)
    ]  # SQLite's depth is 1,000
    places = " OR ".join([f"({' OR '.join(['code = ?'] * chunk)})" for chunk in chunks])
    query = f"SELECT amount FROM sale WHERE {places}"

    with api.profile() as recording, closing(sqlite3.connect(path)) as db:
        for _ in range(5):
            db.execute(query, [f"c{number}" for number in range(values)]).fetchall()
    advice = proved(Report(counted(recording.profile)), str(path))
    assert bool(advice.proofs) == (values <= MOST_DRAWN)
    assert [bool(one.reason) for one in advice.not_measured] == [True] * (values > MOST_DRAWN)
