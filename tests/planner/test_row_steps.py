"""The steps per row in SQLite's program of a statement, and the number of rows that follows from
them.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import queryprof as api
from queryprof.planner.planner import SchemaPlanner

pytestmark = pytest.mark.once

ROWS = 6000
TABLES = (
    "CREATE TABLE sale (id INTEGER PRIMARY KEY, state TEXT, buyer INTEGER, amount REAL)",
    "CREATE TABLE buyer (id INTEGER PRIMARY KEY, city TEXT)",
)
JOINED = (
    "SELECT city, sum(amount) FROM sale JOIN buyer ON buyer.id = buyer WHERE state = ? GROUP BY"
    " city"
)

TEXTS = {
    "one column": "SELECT sum(amount) FROM sale WHERE state = ?",
    "count": "SELECT count(*) FROM sale WHERE state = ?",
    "a range": "SELECT count(*), max(amount) FROM sale WHERE state <= ?",
    "two columns": "SELECT count(*) FROM sale WHERE state = ? AND amount >= 0",
    "joined": JOINED,
    "of each group": "SELECT buyer, count(*) FROM sale WHERE state = ? GROUP BY buyer",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("kinds", [1000, 10, 3])
@pytest.mark.repeats
def test_the_rows_that_are_taken_are_known_by_the_steps(text: str, kinds: int) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for table in TABLES:
            db.execute(table)
        db.executemany("INSERT INTO buyer VALUES (?, ?)", [(i, f"c{i % 7}") for i in range(50)])
        db.executemany(
            "INSERT INTO sale VALUES (?, ?, ?, 1)",
            [(i, f"s{i % kinds}", i % 50) for i in range(ROWS)],
        )
        with api.profile() as recording:
            db.execute(text, ("s0",)).fetchall()
    (one,) = [each for each in recording.profile.aggregates if each.vm_steps]
    plans = tuple(plan.tree for plan in recording.profile.plans)
    assert plans
    with SchemaPlanner({}, {}, TABLES, {sqlite3.sqlite_version}) as planner:
        served = planner.index_help(one.statement, ())
    assert served
    assert served.row_steps
    terms = {term.lower() for term in served.terms}
    least, most = served.row_steps.estimate_remaining_rows(
        terms, one.vm_steps, one.full_scan_steps, None
    )
    assert one.full_scan_steps == ROWS - 1
    # Only a part of a sorter's loop runs for each row.
    near = {"rel": 0.5 if "GROUP" in text else 0.05, "abs": 20}
    assert most == pytest.approx(ROWS / kinds, **near)
    assert least == pytest.approx(most, **near) or " AND " in text


NOT_KNOWN = {
    "a list of any length": "SELECT count(*) FROM sale WHERE state IN (?)",
    "all rows": "SELECT sum(amount) FROM sale",
    "another table is begun beside it": (
        "SELECT count(*), (SELECT id FROM buyer) FROM sale WHERE state = ?"
    ),
    "two scans": "SELECT count(*) FROM sale JOIN buyer ON +buyer.id = buyer WHERE state = ?",
    "the comparison is in an inner loop": (
        "SELECT count(*) FROM buyer CROSS JOIN sale ON sale.buyer = buyer.id WHERE amount > ?"
    ),
}


@pytest.mark.parametrize("text", NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_else_they_are_unknown(text: str) -> None:
    tables = (*TABLES, "CREATE INDEX by_buyer ON sale (buyer)") if "inner" in text else TABLES
    with SchemaPlanner({}, {}, tables, {sqlite3.sqlite_version}) as planner:
        served = planner.index_help(text, ())
    assert served
    assert served.row_steps is None


def test_a_key_of_two_columns_is_no_rowid() -> None:
    table = "CREATE TABLE sale (id INTEGER, state TEXT, buyer INTEGER, PRIMARY KEY (id, buyer))"
    with SchemaPlanner({}, {}, [table], {sqlite3.sqlite_version}) as planner:
        served = planner.index_help("SELECT buyer FROM sale WHERE rowid <> ? AND state = ?", ())
    assert served
    assert served.row_steps
    assert {""} in [set(one.columns) for one in served.row_steps.left_out]


FOLDS = {
    "SELECT max(amount) FROM sale WHERE state = ?": True,
    "SELECT group_concat(buyer) FROM sale WHERE state = ?": True,
    "SELECT json_group_array(buyer) FROM sale WHERE state = ?": True,
    "SELECT ours(buyer) FROM sale WHERE state = ?": False,
    "SELECT max(amount, 1) FROM sale WHERE state = ?": False,
    "SELECT buyer FROM sale WHERE state = ? GROUP BY buyer": False,
    "SELECT amount FROM sale WHERE state = ?": False,
}


@pytest.mark.parametrize(("text", "is_aggregate"), FOLDS.items(), ids=FOLDS)
@pytest.mark.repeats
def test_sqlites_program_shows_whether_rows_are_added_up(text: str, is_aggregate: bool) -> None:
    """An unknown function counts as a function of one row."""
    with SchemaPlanner({}, {}, TABLES) as planner:
        served = planner.index_help(text, ())
    assert served
    assert served.is_aggregate == is_aggregate


def test_another_sqlite_may_take_other_steps() -> None:
    for versions in ({"3.1.1"}, {sqlite3.sqlite_version, "3.1.1"}, ()):
        with SchemaPlanner({}, {}, TABLES, versions) as planner:
            served = planner.index_help(TEXTS["count"], ())
        assert served
        assert served.row_steps is None


SERVED_FIRST = {
    "SELECT id FROM sale WHERE state = ? AND length(buyer) > 90": (3, 2000),
    "SELECT id FROM sale WHERE state = ? AND amount + 0 > 5": (3, 2000),
}


@pytest.mark.parametrize(("text", "expected"), SERVED_FIRST.items(), ids=SERVED_FIRST)
def test_other_conditions_are_told_from_those_of_the_index(
    text: str, expected: tuple[int, int]
) -> None:
    """Few rows are returned, but the index leaves many."""
    kinds, left = expected
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for table in TABLES:
            db.execute(table)
        db.executemany(
            "INSERT INTO sale VALUES (?, ?, ?, 1)",
            [(i, f"s{i % kinds}", i % 50) for i in range(ROWS)],
        )
        with api.profile() as recording:
            rows = db.execute(text, ("s0",)).fetchall()
    (one,) = [each for each in recording.profile.aggregates if each.vm_steps]
    with SchemaPlanner({}, {}, TABLES, {sqlite3.sqlite_version}) as planner:
        served = planner.index_help(one.statement, ())
    assert served
    assert served.row_steps
    found = served.row_steps.estimate_remaining_rows(
        {"state"}, one.vm_steps, one.full_scan_steps, len(rows)
    )
    assert found == (pytest.approx(left, rel=0.01), pytest.approx(left, rel=0.01))


STORED = {
    "a virtual column before it": (
        "CREATE TABLE sale (id INTEGER PRIMARY KEY, twice INTEGER AS (2 * id), state TEXT)"
    ),
    "a stored column before it": (
        "CREATE TABLE sale (id INTEGER PRIMARY KEY, twice INTEGER AS (2 * id) STORED, state TEXT)"
    ),
    "no rowids": (
        "CREATE TABLE sale (twice INTEGER, state TEXT, id INTEGER, PRIMARY KEY (id)) WITHOUT ROWID"
    ),
}


@pytest.mark.parametrize("table", STORED.values(), ids=STORED)
def test_columns_have_the_names_of_where_they_are_stored(table: str) -> None:
    with SchemaPlanner({}, {}, [table], {sqlite3.sqlite_version}) as planner:
        served = planner.index_help("SELECT id FROM sale WHERE state = ? AND twice > ?", ())
    assert served
    if "WITHOUT" in table:
        assert served.row_steps is None
        return
    assert served.row_steps
    compared = [one.columns for one in served.row_steps.left_out]
    assert compared[0] == {"state"}
    assert len(compared) == 2
