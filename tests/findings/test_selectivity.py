"""Savings of an index by the number of rows that it skips, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, process, profile_of
from findings.test_causes import INDEX, MS, SITE, Knows, findings

from queryprof.findings.finding import Finding
from queryprof.model import Plan, Profile
from queryprof.planner.facts import IndexHelp, RowSteps, SkippingComparison

pytestmark = pytest.mark.once


SUM = replace(INDEX, is_aggregate=True)


def row_steps(*costs: int, column: str = "b") -> RowSteps:
    """Return the VM steps of comparisons of one column, and of rows of 9 steps."""
    return RowSteps(
        tuple(SkippingComparison(frozenset({column}), cost) for cost in costs),
        inner=None,
        taken=9,
        steps_outside_scan=12,
    )


@pytest.mark.parametrize(("rows", "won"), [(1, 0.936), (400, 0.737), (2000, 0.0), (10_000, 0.0)])
def test_an_index_wins_less_the_more_rows_are_taken(rows: int, won: float) -> None:
    """A twenty-fifth, a fifth or all of 10,000 rows match. The steps of an execution show how many
    are added up.
    """
    of_row = row_steps(3)
    statement = "SELECT sum(a) FROM t WHERE b = ?"
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=50, vm_steps=50 * (12 + 3 * 10_000 + 6 * rows), full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    found = [
        one
        for one in findings(profile, Knows(replace(SUM, row_steps=of_row)), is_loop=False)
        if one.category == "full_scan"
    ]
    assert [each.gain_ns / (200 * MS) for each in found] == pytest.approx(
        [won] * (won > 0), rel=0.1
    )
    assert all(each.doubt == "" and each.severity == "high" for each in found)
    assert all(
        (f"computed from about {rows} rows" in each.evidence[0]) == (rows > 1) for each in found
    )


@pytest.mark.parametrize(
    ("taken", "is_known"), [(800, True), (1000, False)], ids=["few", "a tenth"]
)
def test_which_comparison_leaves_rows_out_may_not_be_known(taken: int, is_known: bool) -> None:
    """There are two comparisons. Up to some number of rows, the first one may reject all others;
    beyond that neither is known to.
    """
    of_row = row_steps(3, 6)
    statement = "SELECT sum(a) FROM t WHERE b = ? AND c = ?"
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=50, vm_steps=50 * (12 + 3 * 10_000 + 6 * taken), full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    (found,) = findings(profile, Knows(replace(SUM, row_steps=of_row)), is_loop=False)
    assert (found.severity == "high", found.doubt == "") == (is_known, is_known)


def test_how_many_rows_are_added_up_may_not_be_known() -> None:
    statement = "SELECT sum(a) FROM t WHERE b = ?"
    one = aggregate(statement, SITE, ns=300 * MS, count=50)._replace(
        rows=50, vm_steps=50 * 30_000, full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    (found,) = findings(profile, Knows(SUM), is_loop=False)
    assert (found.category, found.severity) == ("full_scan", "medium")
    assert found.doubt.startswith("It is unknown how many rows count() or sum() reads")


OTHERS = [
    (
        "the index is on the first comparison, which leaves nearly all out",
        ("b", "c"),
        3.0,
        0.993,
        "",
    ),
    ("on the first, which leaves few out", ("b", "c"), 6.0, 0.0, ""),
    (
        "on the second: how many that leaves out is not known",
        ("c", "b"),
        3.0,
        0.993,
        "Other conditions",
    ),
    ("an expression is compared first", ("", "b"), 3.0, 0.993, "Other conditions"),
]


@pytest.mark.parametrize(
    ("columns", "steps", "won", "doubt"),
    [one[1:] for one in OTHERS],
    ids=[one[0] for one in OTHERS],
)
def test_conditions_that_the_index_does_not_serve(
    columns: tuple[str, str], steps: float, won: float, doubt: str
) -> None:
    """One of 10,000 rows is returned. The steps per row show what rejects the others."""
    left_out = tuple(
        SkippingComparison(frozenset({one}), cost)
        for one, cost in zip(columns, (3, 6), strict=True)
    )
    of_row = RowSteps(left_out, inner=None, taken=9, steps_outside_scan=12)
    statement = "SELECT a FROM t WHERE b = ? AND c LIKE ?"
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=50, vm_steps=round(50 * (12 + steps * 10_000 + 3)), full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    found = [
        each
        for each in findings(profile, Knows(replace(INDEX, row_steps=of_row)), is_loop=False)
        if each.category == "full_scan"
    ]
    assert bool(found) == (won > 0)
    assert [each.gain_ns / (200 * MS) for each in found] == pytest.approx(
        [won] * (won > 0), rel=0.05
    )
    assert [each.doubt[: len(doubt)] for each in found] == [doubt] * (won > 0)
    assert all((each.severity == "high") == (not doubt) for each in found)


@pytest.mark.parametrize(
    ("statement", "is_sure"),
    [
        ("SELECT a FROM t JOIN s ON s.id = t.s WHERE b = ?", True),
        ("SELECT a FROM t JOIN s ON s.id = t.s WHERE b = ? AND s.c = ?", False),
        ("SELECT a FROM t WHERE b = ? AND length(a) > ?", False),
    ],
)
def test_without_its_program_the_text_shows_other_comparisons(
    statement: str, is_sure: bool
) -> None:
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=50, vm_steps=50 * 30_000, full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    (found,) = findings(profile, Knows(INDEX), is_loop=False)
    assert (found.severity == "high", found.doubt == "") == (is_sure, is_sure)


def scan_of(statement: str, served: IndexHelp, rows: int, steps: float = 30_000) -> list[Finding]:
    """Return the findings about a scan for 50 executions that read 10,000 rows each."""
    one = aggregate(statement, SITE, ns=300 * MS, count=50)._replace(
        rows=50 * rows, vm_steps=round(50 * steps), full_scan_steps=50 * 10_000
    )
    plans = (Plan(statement, "app.db", "SCAN t"),)
    found = findings(replace(profile_of(one), plans=plans), Knows(served), is_loop=False)
    return [each for each in found if each.category == "full_scan"]


def test_what_all_rows_are_read_for_is_no_fault_of_an_aggregate() -> None:
    """For a max() over half of the table, an index would be slower."""
    of_row = row_steps(3)
    statement, steps = "SELECT max(a) FROM t WHERE b = ?", 12 + 3 * 10_000 + 6 * 5000
    assert scan_of(statement, replace(SUM, row_steps=of_row), 1, steps) == []
    # With one returned row, the same steps are an expensive row.
    assert scan_of("SELECT a FROM t WHERE b = ?", replace(INDEX, row_steps=of_row), 1, steps)


def test_processes_may_have_used_several_versions_or_none() -> None:
    used = ("", "3.40.1", "3.40.1, 3.46.0", "")
    processes = tuple(process(number, sqlite_version=one) for number, one in enumerate(used))
    assert Profile(processes, ()).sqlite_versions == ("3.40.1", "3.46.0")


@pytest.mark.parametrize(("rows", "is_known"), [(1, False), (2, True)])
def test_two_rows_are_no_sum_of_all(rows: int, is_known: bool) -> None:
    (found,) = scan_of("SELECT sum(a) FROM t WHERE b = ? GROUP BY c", SUM, rows)
    assert (found.doubt == "") == is_known


def test_a_join_returns_more_rows_than_the_scan_takes() -> None:
    """One selected row is returned 500 times."""
    of_row = replace(row_steps(3), inner=20)
    (found,) = scan_of("SELECT a FROM t WHERE b = ?", replace(INDEX, row_steps=of_row), 500, 30_100)
    assert "to return 500" in found.evidence[0]
    assert found.gain_ns < 0.7 * 300 * MS


def test_how_many_rows_begin_an_inner_loop_is_known_at_the_most() -> None:
    """One of them may take all the steps."""
    assert replace(row_steps(3), inner=20).estimate_remaining_rows({"b"}, 40_012, 10_000, None) == (
        0.0,
        pytest.approx(10_000 / 17, rel=0.01),
    )


def test_a_comparison_of_two_columns_is_not_served_by_an_index_on_one() -> None:
    both = RowSteps(
        (SkippingComparison(frozenset({"b", "c"}), 3),), inner=None, taken=9, steps_outside_scan=12
    )
    assert both.estimate_remaining_rows({"b"}, 30_012, 10_000, None) == (0.0, 10_000)
    assert both.estimate_remaining_rows({"b", "c"}, 30_012, 10_000, None) == (0.0, 0.0)


def test_rows_of_a_range_are_known_by_the_steps() -> None:
    by_range = replace(SUM, by_range=True)
    statement, steps = "SELECT sum(a) FROM t WHERE b > ?", 12 + 3 * 10_000 + 6 * 100
    (found,) = scan_of(statement, replace(by_range, row_steps=row_steps(3)), 1, steps)
    assert (found.severity, found.doubt) == ("high", "")
    (found,) = scan_of(statement, by_range, 1, steps)
    assert found.severity == "medium"
    assert found.doubt.startswith("SQLite searches this index by a range")


@pytest.mark.parametrize(("is_other", "is_reported"), [(True, True), (False, False)])
def test_a_scan_by_another_plan_is_reported(is_other: bool, is_reported: bool) -> None:
    """If no index is known that serves a sum, it may have to read all rows, unless the schema has
    changed since.
    """
    served = IndexHelp(("SCAN t",), is_other=is_other, is_aggregate=not is_other)
    found = scan_of("SELECT sum(a) FROM t WHERE b = ?", served, 1)
    assert ["have changed" in one.fix for one in found] == [True] * is_reported
