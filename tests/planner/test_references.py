"""Foreign keys without an index, which ON DELETE CASCADE checks for each deleted row."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import queryprof as api
from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.planner.planner import SchemaPlanner

pytestmark = pytest.mark.once

TABLES = (
    "CREATE TABLE project (id INTEGER PRIMARY KEY)",
    (
        "CREATE TABLE task (id INTEGER PRIMARY KEY,"
        " project {kind} REFERENCES project ON DELETE CASCADE)"
    ),
    "CREATE INDEX task_project ON task (project)",
    (
        "CREATE TABLE note (id INTEGER PRIMARY KEY, author INTEGER,"
        " task {kind} REFERENCES task ON DELETE {action})"
    ),
)


def found_in(
    more: str = "", action: str = "CASCADE", kind: str = "INTEGER", enforced: str = "ON"
) -> list[Finding]:
    """Delete 4 of 5 projects, with 5 tasks each. There are 1,000 notes of no task."""
    tables = [one.format(action=action, kind=kind) for one in TABLES]
    tables += [more] if more else []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute(f"PRAGMA foreign_keys = {enforced}")
        for table in tables:
            db.execute(table)
        db.executemany("INSERT INTO project VALUES (?)", [(i,) for i in range(5)])
        db.executemany("INSERT INTO task VALUES (?, ?)", [(i, i % 5) for i in range(25)])
        db.executemany("INSERT INTO note (author) VALUES (?)", [(4,)] * 1000)
        with api.profile() as recording:
            for number in range(4):
                db.execute("DELETE FROM project WHERE id = ?", (number,))
    with SchemaPlanner({}, {}, tables, {sqlite3.sqlite_version}) as planner:
        findings = find_all(Report(recording.profile), lambda *_: None, {}, planner)
    return [one for one in findings if one.category == "full_scan"]


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_a_key_that_a_cascade_checks_needs_an_index(action: str) -> None:
    (one,) = found_in(action=action)
    assert one.evidence[0].endswith("rows each to check the foreign key note.task")
    assert one.code == "CREATE INDEX note_task ON note (task);"


def test_a_key_with_an_index_is_searched() -> None:
    assert found_in("CREATE INDEX note_task ON note (task)") == []


def test_a_key_that_is_not_enforced_is_not_checked() -> None:
    assert found_in(enforced="OFF") == []


def test_an_index_on_a_column_of_another_type_is_not_searched() -> None:
    assert [one.code for one in found_in(kind="")] == [""]


@pytest.mark.parametrize("enforced", ["ON", "OFF"])
def test_a_trigger_may_scan(enforced: str) -> None:
    """It is unknown which of the scans takes the time, and whether keys are checked."""
    trigger = (
        "CREATE TRIGGER gone AFTER DELETE ON project BEGIN DELETE FROM note WHERE author + 0 = 9;"
        " END"
    )
    assert all("note_task" not in one.code for one in found_in(trigger, enforced=enforced))
