"""Conditions that keep SQLite from searching an index, by the text of the statement."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.findings.aggregates import returns_only_a_count
from queryprof.findings.program import Program
from queryprof.findings.scan_words import (
    excludes_list,
    has_optional_condition,
    united_tables_advice,
)

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("condition", "is_optional"),
    [
        ("(:a IS NULL OR a = :a)", True),
        ("b = ? AND (? IS NULL OR a = ?)", True),
        ("(a IS NULL OR a = ?)", False),
        ("(a = ? OR ? IS NULL)", False),
        ("a = ?", False),
        ("a = ? IS", False),
    ],
)
def test_a_condition_that_a_parameter_switches_off(condition: str, is_optional: bool) -> None:
    assert has_optional_condition(f"SELECT a FROM t WHERE {condition}") == is_optional


@pytest.mark.parametrize(
    ("condition", "is_excluded"),
    [
        ("a NOT IN (?)", True),
        ("t.a NOT IN (?, ?)", True),
        ('NOT ("t"."a" IN (?))', True),
        ("b = ? AND NOT (a IN (?))", True),
        ("a IN (?)", False),
        ("a NOT IN (SELECT b FROM u)", False),
        ("NOT (b = ? AND a IN (?))", False),
        ("IN (?", False),
        ("a NOT IN", False),
    ],
)
def test_a_condition_that_excludes_a_list(condition: str, is_excluded: bool) -> None:
    assert excludes_list(f"SELECT a FROM t WHERE {condition}") == is_excluded


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*) AS n FROM t GROUP BY a",
        "SELECT a FROM t WHERE (? IS NULL OR a = ?) AND NOT (t.b IN (?))",
    ],
)
def test_a_text_that_ends_anywhere(statement: str) -> None:
    """As in a trace from somebody else, or after the longest text that is read."""
    for length in range(len(statement) + 1):
        for is_so in (returns_only_a_count, excludes_list, has_optional_condition):
            assert is_so(statement[:length]) in (True, False)


@pytest.mark.parametrize(
    ("tables", "sql", "is_named"),
    [
        (5, "SELECT a FROM every WHERE a = 1", True),
        (4, "SELECT a FROM every WHERE a = 1", False),
        (5, "SELECT a FROM every WHERE a = 1 UNION ALL SELECT 1", False),
        (5, "SELECT a FROM t0 WHERE a = 1", False),
    ],
)
def test_a_view_that_unites_many_tables(tables: int, sql: str, is_named: bool) -> None:
    with queryprof.profile() as recording, closing(sqlite3.connect(":memory:")) as db:
        for number in range(tables):
            db.execute(f"CREATE TABLE t{number} (a INTEGER)")
        parts = " UNION ALL ".join(f"SELECT a FROM t{number}" for number in range(tables))
        db.execute(f"CREATE VIEW every AS {parts}")
        db.execute(sql).fetchall()
    program = Program(Report(recording.profile), lambda *_: None, {})
    group = next(one for one in program.all_groups if one.verb == "SELECT")
    said = united_tables_advice(group)
    assert said.startswith(f"The query reads {tables} tables through a view") == is_named
