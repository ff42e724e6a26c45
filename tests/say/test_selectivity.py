"""What an index wins by the rows that it leaves, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from say.by_hand import aggregate, profile_of
from say.test_causes import INDEX, MS, SITE, Knows, findings

from queryprof.analysis.findings.planning import LeftOut, RowSteps
from queryprof.model import Plan

pytestmark = pytest.mark.once


def row_steps(*costs: int, column: str = "b") -> RowSteps:
    """Of comparisons of one column, and of rows of 9 VM steps."""
    return RowSteps(
        tuple(LeftOut(frozenset({column}), cost) for cost in costs), inner=None, taken=9, once=12
    )


@pytest.mark.parametrize(("rows", "won"), [(1, 0.936), (400, 0.737), (2000, 0.0), (10_000, 0.0)])
def test_an_index_wins_less_the_more_rows_are_taken(rows: int, won: float) -> None:
    """A twenty-fifth of 10,000, a fifth, all of them: the steps of an execution say how many are added up."""
    of_row = row_steps(3)
    statement = "SELECT sum(a) FROM t WHERE b = ?"
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=50, vm_steps=50 * (12 + 3 * 10_000 + 6 * rows), full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    found = [
        one
        for one in findings(profile, Knows(replace(INDEX, row_steps=of_row)), is_loop=False)
        if one.category == "full_scan"
    ]
    assert [each.gain_ns / (200 * MS) for each in found] == pytest.approx(
        [won] * (won > 0), rel=0.1
    )
    assert all(each.doubt == "" and each.severity == "high" for each in found)
    assert all((f"made of about {rows}" in each.evidence[0]) == (rows > 1) for each in found)


@pytest.mark.parametrize(
    ("taken", "is_known"), [(800, True), (1000, False)], ids=["few", "a tenth"]
)
def test_which_comparison_leaves_rows_out_may_not_be_known(taken: int, is_known: bool) -> None:
    """Of two: where the first leaves all of them out, up to so many are taken; else none is."""
    of_row = row_steps(3, 6)
    statement = "SELECT sum(a) FROM t WHERE b = ? AND c = ?"
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=50, vm_steps=50 * (12 + 3 * 10_000 + 6 * taken), full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    (found,) = findings(profile, Knows(replace(INDEX, row_steps=of_row)), is_loop=False)
    assert (found.severity == "high", found.doubt == "") == (is_known, is_known)


def test_how_many_rows_are_added_up_may_not_be_known() -> None:
    statement = "SELECT sum(a) FROM t WHERE b = ?"
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=50, vm_steps=50 * 30_000, full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    (found,) = findings(profile, Knows(INDEX), is_loop=False)
    assert (found.category, found.severity) == ("full_scan", "medium")
    assert found.doubt.startswith("How many rows it adds up is not known")


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
    ("columns", "steps", "won", "doubt"), [one[1:] for one in OTHERS], ids=[one[0] for one in OTHERS]
)  # fmt: skip
def test_conditions_that_the_index_does_not_serve(
    columns: tuple[str, str], steps: float, won: float, doubt: str
) -> None:
    """One row is returned of 10,000: what leaves the others out is known by the steps of each."""
    left_out = tuple(
        LeftOut(frozenset({one}), cost) for one, cost in zip(columns, (3, 6), strict=True)
    )
    of_row = RowSteps(left_out, inner=None, taken=9, once=12)
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
def test_without_its_program_the_text_says_what_else_is_compared(
    statement: str, is_sure: bool
) -> None:
    one = aggregate(statement, SITE, ns=200 * MS, count=50)._replace(
        rows=50, vm_steps=50 * 30_000, full_scan_steps=50 * 10_000
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    (found,) = findings(profile, Knows(INDEX), is_loop=False)
    assert (found.severity == "high", found.doubt == "") == (is_sure, is_sure)
