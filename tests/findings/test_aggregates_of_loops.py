"""Advice about an aggregate that a loop computes for each item."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.aggregates import GROUP_BY, RANGES, RUNNING, aggregates_at_once
from queryprof.findings.find import find_all
from queryprof.model import Frame

pytestmark = pytest.mark.once

MS = 1_000_000


@pytest.mark.parametrize(
    ("condition", "fix"),
    [
        ("day = ?", GROUP_BY),
        ("day IN (?)", GROUP_BY),
        ("day <= ?", RUNNING),
        ("? < day", RUNNING),
        ("day > other.day", GROUP_BY),
        ("shop = ? AND day <= ?", GROUP_BY),
        ("day >= ? AND day < ?", RANGES),
        ("day BETWEEN ? AND ?", RANGES),
    ],
)
def test_the_fix_follows_the_comparison(condition: str, fix: str) -> None:
    """GROUP BY day returns the sum of each day, which is no running total."""
    assert aggregates_at_once(f"SELECT sum(n) FROM t WHERE {condition}", "") == fix


def test_an_object_mapper_s_words_are_for_equal_keys() -> None:
    equal, below = (f"SELECT count(*) FROM t WHERE day {one} ?" for one in ("=", "<="))
    assert "annotate" in aggregates_at_once(equal, "django")
    assert aggregates_at_once(below, "django") == RUNNING


@pytest.mark.parametrize(
    ("statement", "system", "is_reported"),
    [
        ("SELECT avg(n) FROM t WHERE zone = ?", "duckdb", True),
        ("SELECT avg(n) FROM t WHERE zone = ?", "postgresql", False),
        ("SELECT n FROM t WHERE zone = ?", "duckdb", False),
    ],
)
def test_a_slow_aggregate_of_duckdb_is_for_all_items_at_once(
    statement: str, system: str, is_reported: bool
) -> None:
    """Each execution takes 50 ms. PostgreSQL may only lack an index; DuckDB reads the table."""

    def loop(frame: Frame, _: str) -> Frame | None:
        return replace(frame, line=1) if frame.function == MAIN.function else None

    one = aggregate(statement, (QUERY, MAIN), ns=1250 * MS, count=25)
    one = one._replace(rows=25, counted=0, vm_steps=0)
    profile = replace(profile_of(one), systems={statement: system})
    found = {each.category for each in find_all(Report(profile), loop, {})}
    assert ("n_plus_one" in found) == is_reported
