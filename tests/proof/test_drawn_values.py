"""Statements without recorded values are measured with values from the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from proof.counted_time import counted, proved

import queryprof as api
from queryprof.analysis.report import Report
from queryprof.proof.workload import MAX_DRAWN

pytestmark = pytest.mark.once


@pytest.mark.parametrize("reads_all", [True, False], ids=["fetchall", "may stop"])
@pytest.mark.repeats
def test_values_of_the_database_have_more_rows_than_the_program_read(
    tmp_path: Path, reads_all: bool
) -> None:
    """Their order and statistics differ. The values are the same if all of them are read."""
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
    assert ("the program may stop reading early" in proof.doubt) != reads_all
    assert reads_all == (not proof.doubt)


@pytest.mark.parametrize("values", [MAX_DRAWN, MAX_DRAWN + 1])
@pytest.mark.repeats
def test_values_of_very_many_parameters_are_not_drawn(tmp_path: Path, values: int) -> None:
    """The statement is not measured, and the output has the reason."""
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
            db.execute(query, ["c7"] * values).fetchall()
    advice = proved(Report(counted(recording.profile)), str(path))
    assert bool(advice.proofs) == (values <= MAX_DRAWN)
    assert [bool(one.reason) for one in advice.not_measured] == [True] * (values > MAX_DRAWN)


OTHERS = {
    "both ends of a range": ("SELECT id FROM sale WHERE amount BETWEEN 5 AND 1995", False),
    "a list": (f"SELECT id FROM sale WHERE amount IN ({', '.join(map(str, range(500)))})", False),
    "a sum over a range": ("SELECT sum(id) FROM sale WHERE amount BETWEEN 5 AND 1995", False),
    "one value": ("SELECT id FROM sale WHERE amount = 77", True),
}


@pytest.mark.parametrize(("query", "is_proved"), OTHERS.values(), ids=OTHERS)
@pytest.mark.repeats
def test_what_is_another_query_with_drawn_values_is_not_measured(
    tmp_path: Path, query: str, is_proved: bool
) -> None:
    """It returns one row instead of 1,991. An index that saves nothing would be proved with it."""
    path = tmp_path / "sales.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, amount INTEGER)")
        db.executemany("INSERT INTO sale VALUES (?, ?)", [(i, i) for i in range(2000)])
        db.commit()
    with api.profile() as recording, closing(sqlite3.connect(path)) as db:
        for _ in range(20):
            db.execute(query).fetchall()
    advice = proved(Report(counted(recording.profile)), str(path))
    assert bool(advice.changes) == bool(advice.proofs) == is_proved
    assert ["does different work" in one.reason for one in advice.not_measured] == [True] * (
        not is_proved
    )


def test_what_no_change_touches_takes_as_long_as_before(tmp_path: Path) -> None:
    """The total consists of what the changes save."""
    path = tmp_path / "two.db"
    with closing(sqlite3.connect(path)) as db:
        for name in ("a", "b"):
            db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, x INTEGER)")
            db.executemany(f"INSERT INTO {name} VALUES (?, ?)", [(i, i) for i in range(2000)])
        db.commit()
    with api.profile() as recording, closing(sqlite3.connect(path)) as db:
        for number in range(20):
            db.execute("SELECT id FROM a WHERE x = ?", (number,)).fetchall()
            db.execute("SELECT sum(x) FROM b").fetchall()
    advice = proved(Report(counted(recording.profile)), str(path))
    by_table = {"a " in one.statement: one for one in advice.proofs}
    assert by_table[False].before == by_table[False].after
    assert by_table[False].after_ns == by_table[False].recorded_ns
    assert by_table[True].is_proved
