"""Tables that a join multiplies with each other, by SQLite's own program of the statement."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import queryprof as api
from queryprof.analysis.plans import normalize_plan
from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.model import Profile
from queryprof.planner.planner import SchemaPlanner

pytestmark = pytest.mark.once

TABLES = (
    "CREATE TABLE album (id INTEGER PRIMARY KEY, name TEXT, year INTEGER)",
    "CREATE TABLE photo (id INTEGER PRIMARY KEY, album INTEGER, day INTEGER)",
    "CREATE INDEX photo_album ON photo (album)",
    "CREATE TABLE comment (id INTEGER PRIMARY KEY, album INTEGER, photo INTEGER, day INTEGER)",
    "CREATE INDEX comment_album ON comment (album)",
    "CREATE INDEX comment_photo ON comment (photo)",
    "CREATE TABLE note (album INTEGER, day INTEGER)",
    "CREATE INDEX note_day ON note (day)",
    "CREATE TABLE cover (album INTEGER PRIMARY KEY, file TEXT)",
)
BOTH = "LEFT JOIN photo p ON p.album = a.id LEFT JOIN comment c ON c.album = a.id"

CROSSED = {
    "two counts": (
        (
            f"SELECT a.name, count(DISTINCT p.id), count(DISTINCT c.id) FROM album a {BOTH}"
            " GROUP BY a.id"
        ),
        ("photo", "comment", "album"),
    ),
    "rows": (f"SELECT a.name, p.id, c.day FROM album a {BOTH}", ("photo", "comment", "album")),
    "an automatic index": (
        (
            "SELECT a.name, p.id, n.day FROM album a LEFT JOIN photo p ON p.album = a.id LEFT JOIN note"
            " n ON n.album = a.id"
        ),
        ("photo", "note", "album"),
    ),
    "no condition": (
        "SELECT count(DISTINCT p.id) FROM photo p, comment c WHERE p.album = ? AND c.photo = ?",
        ("photo", "comment"),
    ),
    "joined by a child's child": (
        (
            "SELECT a.name, r.id, n.id FROM album a LEFT JOIN photo p ON p.album = a.id LEFT JOIN"
            " comment r ON r.photo = p.id LEFT JOIN comment n ON n.album = a.id"
        ),
        ("photo", "comment", "album"),
    ),
}
LINKED = {
    "one table": "SELECT a.name, p.id FROM album a LEFT JOIN photo p ON p.album = a.id",
    "a chain": (
        "SELECT a.name, p.id, c.day FROM album a LEFT JOIN photo p ON p.album = a.id LEFT JOIN"
        " comment c ON c.photo = p.id"
    ),
    "a single row": (
        "SELECT a.name, p.id, o.file FROM album a LEFT JOIN photo p ON p.album = a.id LEFT JOIN"
        " cover o ON o.album = a.id"
    ),
    "compared": (
        f"SELECT a.name, p.id, c.id FROM album a {BOTH.replace('LEFT JOIN', 'JOIN')}"
        " WHERE c.day = p.day"
    ),
    "compared in a calculation": (
        "SELECT count(*) FROM photo p, comment c WHERE p.album = ? AND c.photo = ?"
        " AND abs(p.day - c.day) < 3"
    ),
    "compared by bits": (
        "SELECT count(*) FROM photo p, comment c WHERE p.album = ? AND c.photo = ?"
        " AND (p.day & c.day) <> 0"
    ),
    "searched by a calculation": (
        "SELECT p.id, c.id FROM photo p JOIN comment c ON c.photo = abs(p.day) WHERE p.album = ?"
    ),
    "searched by rows of a function": (
        "SELECT p.id, c.id FROM photo p JOIN json_each(p.day) j JOIN comment c"
        " ON c.photo = j.value WHERE p.album = ?"
    ),
    "searched by rows of a subquery": (
        "SELECT p.id, c.id FROM photo p JOIN comment c ON c.photo IN"
        " (SELECT day FROM note WHERE note.album = p.id) WHERE p.album = ?"
    ),
    "each pair is looked up": (
        "SELECT p.id, c.id, n.day FROM photo p JOIN comment c LEFT JOIN note n ON n.album = p.id"
        " AND n.day = c.id WHERE p.album = ? AND c.photo = ?"
    ),
    "one subquery for each": (
        "SELECT name, (SELECT count(*) FROM photo WHERE album = a.id), (SELECT count(*) FROM"
        " comment WHERE album = a.id) FROM album a"
    ),
    "two selects": (
        "SELECT id FROM photo WHERE album = ? UNION ALL SELECT id FROM comment WHERE album = ?"
    ),
}


def recorded(sql: str) -> Profile:
    """Record one execution over 200 albums with 10 photos and 10 comments each."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for table in TABLES:
            db.execute(table)
        db.executemany("INSERT INTO album VALUES (?, 'a', 1)", [(i,) for i in range(200)])
        children = [(i % 200,) for i in range(2000)]
        for table in ("photo", "comment", "note"):
            db.executemany(f"INSERT INTO {table} (album) VALUES (?)", children)
        with api.profile() as recording:
            db.execute(sql, [1] * sql.count("?")).fetchall()
    return recording.profile


def found_in(sql: str) -> tuple[str, ...]:
    profile = recorded(sql)
    plans = [normalize_plan(plan.tree) for plan in profile.plans]
    (statement,) = {one.statement for one in profile.aggregates if one.vm_steps}
    with SchemaPlanner({}, {}, TABLES, {sqlite3.sqlite_version}) as planner:
        return planner.crossed_tables(statement, plans)


@pytest.mark.parametrize(("sql", "tables"), CROSSED.values(), ids=CROSSED)
def test_each_row_of_one_meets_each_row_of_the_other(sql: str, tables: tuple[str, ...]) -> None:
    assert found_in(sql) == tables


@pytest.mark.parametrize("sql", LINKED.values(), ids=LINKED)
def test_the_rows_of_one_choose_those_of_the_other(sql: str) -> None:
    assert found_in(sql) == ()


def test_a_plan_that_the_program_did_not_have_says_nothing() -> None:
    sql, _ = CROSSED["two counts"]
    with SchemaPlanner({}, {}, TABLES, {sqlite3.sqlite_version}) as planner:
        assert planner.crossed_tables(sql, [("SCAN c", "SCAN p")]) == ()
        assert planner.crossed_tables("SELECT * FROM elsewhere", [("SCAN elsewhere",)]) == ()


def test_the_tables_are_named() -> None:
    sql, _ = CROSSED["two counts"]
    with SchemaPlanner({}, {}, TABLES, {sqlite3.sqlite_version}) as planner:
        findings = find_all(Report(recorded(sql)), lambda *_: None, {}, planner)
    (one,) = [one for one in findings if one.category == "duplicate_rows"]
    assert "every row of photo with every row of comment, for each row of album" in one.evidence[0]
