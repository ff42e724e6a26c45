"""The gain of a covering index, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.test_causes import MS, SITE, Knows, findings

from queryprof.findings.finding import Finding
from queryprof.model import Plan
from queryprof.planner.facts import IndexHelp, RowSteps, SkippingComparison

pytestmark = pytest.mark.once

GROUPS = "SELECT b, sum(a) FROM t GROUP BY b"
SUM = "SELECT sum(a) FROM t WHERE b = ?"
NARROW, WIDE = "CREATE INDEX t_b ON t (b);", "CREATE INDEX t_b_a ON t (b, a);"
SORTED = ("SCAN t", "USE TEMP B-TREE FOR GROUP BY")
IN_ORDER = IndexHelp(SORTED, NARROW, ("b",), covering=WIDE, searches=False, sorts_less=True)


def covered(
    statement: str,
    served: IndexHelp,
    read: int = 0,
    rows: int = 100,
    steps: int = 0,
    executions: int = 11,
    pages: float = 0,
    ns: int = 200 * MS,
) -> list[Finding]:
    """Return the findings about covering indexes for a statement that takes `ns` of a second.

    Args:
        read, rows, steps, pages: of each execution.
    """
    one = aggregate(statement, SITE, ns=ns, count=executions)._replace(
        rows=rows * executions,
        vm_steps=steps * executions,
        full_scan_steps=read * executions,
        page_fetches=round(pages * executions),
        page_fetch_samples=executions if pages else 0,
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "\n".join(served.plan)),))
    return [
        found
        for found in findings(profile, Knows(served), is_loop=False)
        if found.category == "missing_covering_index"
    ]


@pytest.mark.parametrize(
    ("read", "executions", "won"),
    [(40_000, 11, 0.78), (1000, 11, 0.4), (999, 11, 0), (40_000, 10, 0)],
)
def test_rows_are_grouped_by_an_index(read: int, executions: int, won: float) -> None:
    """A covering index on a thousand rows in eleven groups also avoids the sort."""
    found = covered(GROUPS, IN_ORDER, read, executions=executions)
    assert [one.gain_ns / (200 * MS) for one in found] == pytest.approx([won] * (won > 0), rel=0.01)
    for one in found:
        assert (one.code, one.severity, one.doubt) == (WIDE, "high" if won > 0.5 else "low", "")
        assert "sort them for GROUP BY" in one.evidence[0]
        assert "An index on b alone would be slower" in one.fix


@pytest.mark.parametrize(("rows", "is_needless"), [(39_600, True), (39_599, False)])
def test_a_distinct_that_removes_nothing(rows: int, is_needless: bool) -> None:
    """With an ordering, Django selects the sorted column too."""
    plan = tuple(step.replace("GROUP BY", "DISTINCT") for step in IN_ORDER.plan)
    (one,) = covered("SELECT DISTINCT a, b FROM t", replace(IN_ORDER, plan=plan), 40_000, rows=rows)
    assert one.fix.startswith("DISTINCT removes hardly any rows") == is_needless
    assert "create an index with all columns" in one.fix.lower()


def test_an_index_that_has_all_needs_no_wider_one() -> None:
    (one,) = covered(
        "SELECT b FROM t GROUP BY b", replace(IN_ORDER, covers=True, covering=""), 40_000
    )
    assert one.code == NARROW
    assert "alone" not in one.fix


@pytest.mark.parametrize(
    "served",
    [
        replace(IN_ORDER, covering=""),
        replace(IN_ORDER, code=""),
        replace(IN_ORDER, sorts_less=False),
    ],
    ids=["too wide", "none", "in no order"],
)
def test_without_such_an_index_groups_are_not_reported(served: IndexHelp) -> None:
    """An index on only the groups would be slower than the sort."""
    assert covered(GROUPS, served, 40_000) == []


OF_ROW = RowSteps(
    (SkippingComparison(frozenset({"b"}), 3),), inner=None, taken=5, steps_outside_scan=10
)


@pytest.mark.parametrize(
    ("taken", "is_better"),
    [(200, False), (700, False), (900, True), (3333, True), (8000, True), (8001, False)],
)
def test_where_many_rows_are_left_they_are_not_looked_up(taken: int, is_better: bool) -> None:
    """For few of 10,000 rows, an index on the compared column saves as much. For many rows it saves
    nothing.
    """
    served = IndexHelp(
        ("SCAN t",), NARROW, ("b",), covering=WIDE, row_steps=OF_ROW, is_aggregate=True
    )
    steps = 10 + 3 * 10_000 + 2 * taken
    found = covered(SUM, served, 10_000, 1, steps)
    assert bool(found) == is_better
    for one in found:
        assert one.code == WIDE
        assert f"computed from about {taken:,} rows" in one.evidence[0]


@pytest.mark.parametrize(("rows", "severity"), [(499, "high"), (500, "medium")])
def test_rows_that_are_fetched_are_looked_up_one_by_one(rows: int, severity: str) -> None:
    """The scan reads 10,000 rows. The gain is high only if less than a twentieth is fetched."""
    for covers in (False, True):
        served = IndexHelp(("SCAN t",), NARROW, ("b",), covers=covers, row_steps=OF_ROW)
        one = aggregate("SELECT a FROM t WHERE b = ?", SITE, ns=900 * MS, count=11)._replace(
            rows=rows * 11, vm_steps=11 * (10 + 3 * 10_000 + 2 * rows), full_scan_steps=11 * 10_000
        )
        profile = replace(profile_of(one), plans=(Plan(one.statement, "app.db", "SCAN t"),))
        (found,) = findings(profile, Knows(served), is_loop=False)
        expected = "high" if covers else severity
        assert (found.severity, bool(found.doubt)) == (expected, expected == "medium")


def test_rows_that_are_fetched_take_longer_than_to_look_them_up() -> None:
    served = IndexHelp(("SCAN t",), NARROW, ("b",), covering=WIDE, row_steps=OF_ROW)
    assert covered("SELECT a FROM t WHERE b = ?", served, 10_000, 3333, 40_000) == []


FETCHING = 20 * MS
"""The time of 11 executions with 1,000 or more page fetches each, at up to 3 us per fetch."""


@pytest.mark.parametrize(("ns", "won"), [(132 * MS, 33 * MS), (133 * MS, 0)])
def test_what_page_fetches_do_not_take_is_not_saved(ns: int, won: int) -> None:
    """A quarter of the time is page fetches: 11,000 of 3 us. The rest may be Python's."""
    plan = ("SEARCH t USING INDEX t_b (b=?)",)
    found = covered(SUM, IndexHelp(plan, widened=WIDE), 0, 1, 12_000, pages=1000, ns=ns)
    assert [one.gain_ns for one in found] == [won] * (won > 0)


@pytest.mark.parametrize(
    ("plan", "read", "pages", "rows", "won"),
    [
        ("SCAN t USING INDEX t_b", 10_000, 5000, 100, 0.727),
        ("SCAN t USING INDEX t_b", 10_000, 4999, 100, 0),
        ("SCAN t USING INDEX t_b", 10_000, 5000, 10_000, 0.5),
        ("SEARCH t USING INDEX t_b (b=?)", 0, 1000, 1, 0.8),
        ("SEARCH t USING INDEX t_b (b=?)", 0, 999, 1, 0),
        ("SEARCH t USING INDEX t_b (b=?)", 0, 2000, 1000, 0.5),
        ("SEARCH t USING INDEX t_b (b=?)", 0, 1999, 1000, 0),
        ("SEARCH t USING COVERING INDEX t_b (b=?)", 0, 1000, 1, 0),
    ],
)
def test_rows_of_an_index_are_looked_up(
    plan: str, read: int, pages: int, rows: int, won: float
) -> None:
    """Rows need page fetches of their own unless they are stored in the order of the index."""
    statement = SUM if "SEARCH" in plan else GROUPS
    found = covered(
        statement, IndexHelp((plan,), widened=WIDE), read, rows, 12_000, pages=pages, ns=FETCHING
    )
    assert [one.gain_ns / FETCHING for one in found] == pytest.approx([won] * (won > 0), rel=0.01)
    assert all((one.code, "t_b, which you can drop" in one.fix) == (WIDE, True) for one in found)


@pytest.mark.parametrize(
    ("step", "won"),
    [
        ("", 0.8),
        ("USE TEMP B-TREE FOR GROUP BY", 0.5),
        ("MATERIALIZE s", 0.5),
        ("CO-ROUTINE s", 0.5),
        ("RECURSIVE STEP", 0.5),
        ("SCAN MATERIALIZED", 0.8),
    ],
)
def test_what_is_kept_meanwhile_has_pages_too(step: str, won: float) -> None:
    """A temporary structure also uses pages, so the index does not save all of them."""
    plan = ("SEARCH t USING INDEX t_b (b=?)", *[step] * bool(step))
    (one,) = covered(SUM, IndexHelp(plan, widened=WIDE), 0, 1, 12_000, pages=2000, ns=FETCHING)
    assert one.gain_ns / FETCHING == pytest.approx(won)
    assert ("temporary rows" in one.doubt) == (won < 0.8)
    assert one.doubt  # the rows' width is unknown
