"""Conditions that keep SQLite from searching an index, by the text of the statement."""

from __future__ import annotations

import pytest

from queryprof.findings.aggregates import returns_only_a_count
from queryprof.findings.scan_words import excludes_list, has_optional_condition

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
