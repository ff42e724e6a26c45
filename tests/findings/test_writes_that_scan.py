"""Writes whose plan has no scan, but whose triggers scan a table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.findings.lookup import findings_of
from queryprof.model import Plan

pytestmark = pytest.mark.once

SCHEMA = """
CREATE TABLE node (id INTEGER PRIMARY KEY);
CREATE TABLE link (id INTEGER PRIMARY KEY, node INTEGER);
CREATE TRIGGER lonely AFTER DELETE ON link BEGIN
  DELETE FROM node WHERE id NOT IN (SELECT node FROM link);
END;
"""
DELETE = "DELETE FROM link WHERE id = ?"


def recorded(database: Path, links: int) -> Report:
    """Return the report of a program that deletes single rows by their key."""
    with queryprof.profile() as recording, closing(sqlite3.connect(database)) as db:
        db.executescript(SCHEMA)
        db.executemany("INSERT INTO node VALUES (?)", ((n,) for n in range(50)))
        db.executemany("INSERT INTO link VALUES (?, ?)", ((n, n % 50) for n in range(links)))
        for number in range(60):
            db.execute(DELETE, (number,))
        db.commit()
    return Report(recording.profile)


def of_the_delete(report: Report) -> Finding | None:
    found = (one for one in findings_of(report, ()) if one.statement == DELETE)
    return next(found, None)


def test_a_trigger_that_scans_a_table(tmp_path: Path) -> None:
    report = recorded(tmp_path / "shop.db", 5_000)
    found = of_the_delete(report)
    assert found is not None
    assert found.category == "full_scan"
    assert found.fix.startswith("A trigger on the written table")
    assert found.evidence[-1] == "the statement fires the trigger lonely"
    assert "own plan has no scan" in found.evidence[0]


def test_a_trigger_that_scans_few_rows(tmp_path: Path) -> None:
    found = of_the_delete(recorded(tmp_path / "shop.db", 500))
    assert found is None or found.category != "full_scan"


@pytest.mark.parametrize(
    ("plan", "scanned", "is_indirect"),
    [
        ("SEARCH t USING INTEGER PRIMARY KEY (rowid=?)", 1000, True),
        ("SEARCH t USING INTEGER PRIMARY KEY (rowid=?)", 999, False),
        ("SCAN t USING COVERING INDEX t_a", 1000, False),
        (
            "SEARCH t USING INDEX t_a (a=?)\nSEARCH u USING AUTOMATIC COVERING INDEX (b=?)",
            1000,
            False,
        ),
    ],
)
def test_plans_without_a_scan(plan: str, scanned: int, is_indirect: bool) -> None:
    one = aggregate(DELETE, (MAIN,), ns=400_000_000, count=50)._replace(
        vm_steps=50 * 20_000, full_scan_steps=50 * scanned
    )
    profile = replace(profile_of(one), plans=(Plan(DELETE, "app.db", plan),))
    found = find_all(Report(profile), lambda *_: None, {})
    assert any("own plan has no scan" in text for one in found for text in one.evidence) == (
        is_indirect
    )


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_foreign_key_that_scans_a_table(tmp_path: Path, is_readable: bool) -> None:
    """The advice names the referring table, even if the database is gone."""
    database, statement = tmp_path / "shop.db", "DELETE FROM author WHERE name = ?"
    with closing(sqlite3.connect(database)) as db, db:
        db.executescript(
            "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);"
            " CREATE TABLE book (author INTEGER REFERENCES author ON DELETE CASCADE)"
        )
        db.executemany("INSERT INTO author VALUES (?, ?)", ((n, f"a{n % 40}") for n in range(200)))
        db.executemany("INSERT INTO book VALUES (?)", ((n % 200,) for n in range(20_000)))
    with queryprof.profile() as recording, closing(sqlite3.connect(database)) as db, db:
        db.execute("PRAGMA foreign_keys = ON")
        for number in range(30):
            db.execute(statement, (f"a{number}",))
    if not is_readable:
        database.rename(tmp_path / "away.db")
    (found,) = (
        one
        for one in findings_of(Report(recording.profile), ())
        if one.statement == statement and one.category == "full_scan"
    )
    if is_readable:
        assert "CREATE INDEX book_author ON book (author);" in found.code
        assert "CREATE INDEX author_name ON author (name);" in found.code
        assert found.doubt == ""
    else:
        assert found.evidence[0].endswith("the plan scans book, which the statement does not name")
        assert found.fix.startswith("Create an index on the column of book that refers to")
        assert found.doubt.startswith("shop.db cannot be read here")


@pytest.mark.parametrize(
    ("statement", "plan", "said"),
    [
        ("DELETE FROM song WHERE a = ?", "SCAN song\nSCAN play", "scans play, which"),
        ("DELETE FROM main.song WHERE a = ?", "SCAN main.song\nSCAN play", "scans play, which"),
        ("UPDATE temp.song SET a = 1 WHERE b = ?", "SCAN temp.song", ""),
        ("DELETE FROM song WHERE id = ?", "SEARCH song\nSCAN song", "also scans song itself"),
        ("INSERT OR REPLACE INTO song VALUES (?)", "SCAN play", "scans play, which"),
        ("REPLACE INTO song VALUES (?)", "SCAN play", "scans play, which"),
        # A view names none of its tables.
        ("INSERT OR REPLACE INTO song SELECT a FROM chart WHERE a = ?", "SCAN play", ""),
        ("DELETE FROM chart WHERE a = ?", "SCAN play", ""),
        ("DELETE FROM song WHERE a IN (SELECT a FROM chart)", "SEARCH song\nSCAN play", ""),
        ("UPDATE song SET a = b FROM chart WHERE c = ?", "SEARCH song\nSCAN play", ""),
        ("DELETE FROM song WHERE a IN chart", "SEARCH song\nSCAN play", ""),
    ],
)
def test_tables_that_only_a_foreign_key_scans(statement: str, plan: str, said: str) -> None:
    """The database is gone."""
    one = aggregate(statement, (MAIN,), ns=10**9, count=50)._replace(rows=50)
    one = one._replace(full_scan_steps=50 * 9_000, vm_steps=50 * 30_000, counted=50)
    profile = replace(profile_of(one), plans=(Plan(statement, "/gone.db", plan),))
    found = find_all(Report(profile), lambda *_: None, {})
    plans = [each.evidence[0] for each in found if ": the plan " in each.evidence[0]]
    assert [f"the plan {said}" in each for each in plans] == [True] * bool(said)


def test_steps_of_triggers_are_no_reason_for_a_wider_index(tmp_path: Path) -> None:
    """A trigger takes many steps for each row that the UPDATE finds."""
    database = tmp_path / "chat.db"
    with closing(sqlite3.connect(database)) as db, db:
        db.executescript(
            "CREATE TABLE message (id INTEGER PRIMARY KEY, chat INTEGER, done INTEGER);"
            "CREATE INDEX message_chat ON message (chat);"
            "CREATE TABLE log (id INTEGER PRIMARY KEY, message INTEGER);"
            "CREATE TRIGGER changed AFTER UPDATE ON message BEGIN"
            " INSERT INTO log (message) VALUES (old.id), (old.id), (old.id), (old.id), (old.id);"
            " DELETE FROM log WHERE id > 5 AND message = old.id; END"
        )
        rows = ((n % 30,) for n in range(1_200))
        db.executemany("INSERT INTO message (chat, done) VALUES (?, 0)", rows)
    with queryprof.profile() as recording, closing(sqlite3.connect(database)) as db, db:
        for number in range(30):
            db.execute("UPDATE message SET done = 1 WHERE chat = ? AND done = 0", (number,))
    found = findings_of(Report(recording.profile), ())
    assert "narrow_index" not in [one.category for one in found]
