"""Writes whose plan has no scan, but whose triggers scan a table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.finding import Finding
from queryprof.findings.lookup import findings_of

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
