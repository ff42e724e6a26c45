"""A query whose rows change by themselves is no duplicate, and an index that only sorts helps only
if enough rows match.
"""

from __future__ import annotations

import dataclasses

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.test_causes import Knows, findings

from queryprof.analysis.report import Report
from queryprof.findings.groups import statement_groups
from queryprof.findings.program import Program
from queryprof.findings.repeated import is_volatile
from queryprof.findings.scan_words import plain_column_advice
from queryprof.findings.selectivity import can_stop_early
from queryprof.model import Frame, Plan
from queryprof.planner.facts import IndexHelp, RowSteps, SkippingComparison
from queryprof.sql.tokens import tokens_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT a FROM t ORDER BY RANDOM() LIMIT ?", True),
        ("SELECT a FROM t WHERE at < julianday(?)", True),
        ("SELECT strftime(?, ?) FROM t", True),
        ("SELECT datetime() FROM t", True),
        ("SELECT CURRENT_TIMESTAMP", True),
        ("SELECT now()", True),
        ("SELECT a FROM t WHERE day = ?", False),
        ("SELECT date(at) FROM t", False),
        ("SELECT strftime(?, at) FROM t", False),
        ("SELECT a, time FROM t WHERE date = ? AND random = ?", False),
        ("SELECT strftime", False),
        ("", False),
    ],
)
def test_a_volatile_query_returns_other_rows_each_time(statement: str, expected: bool) -> None:
    assert is_volatile(statement) == expected


SITE = (Frame("page", "/app/a.py", 4),)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (12 + 3 * 10_000 + 10 * 4, False),  # four rows match
        (12 + 3 * 10_000 + 10 * 5_000, True),
        (None, None),
    ],
)
def test_an_order_is_worth_an_index_if_many_rows_match(
    steps: int | None, expected: bool | None
) -> None:
    """If few rows match, the scan along the index continues to its end and looks up each row in the
    table.
    """
    known = steps is not None
    rows = RowSteps(
        (SkippingComparison(frozenset({""}), 3),), inner=None, taken=13, steps_outside_scan=12
    )
    served = IndexHelp(
        ("SCAN t", "USE TEMP B-TREE FOR ORDER BY"),
        "CREATE INDEX t_at ON t (at);",
        ("at",),
        searches=False,
        sorts_less=True,
        row_steps=rows if known else None,
    )
    statement = "SELECT a FROM t WHERE lower(b) = ? ORDER BY at LIMIT ?"
    one = aggregate(statement, SITE, ns=400_000_000, count=50)._replace(
        rows=50 * 4, vm_steps=50 * (steps or 90_000), counted=50, full_scan_steps=50 * 10_000
    )
    plans = (Plan(statement, "app.db", "\n".join(served.plan)),)
    profile = dataclasses.replace(profile_of(one), plans=plans)
    (group,) = statement_groups(Report(profile))
    filtering = IndexHelp(served.plan, "CREATE INDEX t_b ON t (lower(b));", ("lower(b)",))
    filters = dataclasses.replace(served, filtering=filtering)
    (found,) = findings(profile, Knows(filters))
    assert ("(lower(b))" in found.fix) == (expected is False)
    assert can_stop_early(group, served) == expected
    assert can_stop_early(group, dataclasses.replace(served, searches=True)) is True


def test_a_query_that_skips_most_rows_scans_and_one_that_keeps_them_sorts() -> None:
    """A sorted row takes eight steps more than a row that the query skips (two steps)."""
    statement = "SELECT a FROM t WHERE b = ? ORDER BY c LIMIT ?"
    plan = "SCAN t\nUSE TEMP B-TREE FOR ORDER BY"
    served = IndexHelp(
        tuple(plan.split("\n")),
        code="CREATE INDEX t_b ON t (b, c);",
        terms=("b", "c"),
        sorts_less=True,
    )
    for steps, category in ((4 * 10_000, "full_scan"), (4 * 10_000 + 1, "temp_btree_sort")):
        one = aggregate(statement, SITE, ns=400_000_000, count=50)._replace(
            rows=50, vm_steps=50 * steps, full_scan_steps=50 * 10_000
        )
        profile = dataclasses.replace(profile_of(one), plans=(Plan(statement, "app.db", plan),))
        (found,) = findings(profile, Knows(served))
        assert found.category == category
        only_sorts = dataclasses.replace(served, searches=False)
        (found,) = findings(profile, Knows(only_sorts))
        assert found.category == "temp_btree_sort"


@pytest.mark.parametrize(("name", "expected"), [("walk", True), ("card.<locals>.<genexpr>", False)])
def test_two_generator_expressions_do_not_call_each_other(name: str, expected: bool) -> None:
    """They have the same name, and perhaps the same line."""
    path = (Frame(name, "/app/a.py", 4), Frame(name, "/app/a.py", 4), Frame("main", "/app/a.py", 9))
    one = aggregate("SELECT a FROM t WHERE b = ?", path, ns=400_000_000, count=50)
    (group,) = statement_groups(Report(profile_of(one)))
    program = Program(Report(profile_of(one)), lambda *_: None, {})
    assert bool(program.innermost_loop(group)) == expected


def test_functions_of_django_are_in_no_index() -> None:
    """Only Django's own connections have these functions: no other client could write to the
    table.
    """
    operand = tokens_of('django_datetime_cast_date("time", ?, ?)')
    assert "create an index" not in plain_column_advice(operand)
    assert "or create an index" in plain_column_advice(tokens_of("lower(name)"))
