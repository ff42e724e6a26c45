"""Conditions that keep SQLite from searching an index, by the text of the statement."""

from __future__ import annotations

import pytest

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
