"""Findings about a database file that cannot be read any more."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.finding import Severity
from queryprof.findings.lookup import findings_of, unreadable_database_caution

pytestmark = pytest.mark.once


def test_an_index_is_less_sure_without_the_schema(tmp_path: Path) -> None:
    """SQLite's planner cannot check it. With --db it can."""
    database = tmp_path / "shop.db"
    with queryprof.profile() as recording, closing(sqlite3.connect(database)) as db:
        db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, sku TEXT)")
        db.executemany("INSERT INTO item (sku) VALUES (?)", ((f"s{n}",) for n in range(20_000)))
        for number in range(300):
            db.execute("SELECT id FROM item WHERE sku = ?", (f"s{number}",)).fetchall()
        db.commit()
    report = Report(recording.profile)

    def scan(*databases: str) -> tuple[Severity, str, str]:
        found = findings_of(report, databases)
        (one,) = (one for one in found if one.category == "full_scan")
        return one.severity, one.doubt, one.code

    index = "CREATE INDEX item_sku ON item (sku);"
    assert scan() == (Severity.HIGH, "", index)
    assert unreadable_database_caution(report) == ""
    moved = database.rename(tmp_path / "away.db")
    severity, doubt, code = scan()
    assert (severity, code) == (Severity.MEDIUM, index)
    assert doubt.startswith("shop.db cannot be read here")
    assert unreadable_database_caution(report).startswith("shop.db cannot be read here, so the")
    assert scan(str(moved)) == (Severity.HIGH, "", index)
