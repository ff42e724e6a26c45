"""The figures of a test that a baseline keeps.

A baseline keeps only figures that do not vary between runs: executions, rows, SQLite's steps and
query plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from queryprof.analysis.baseline_rules import SCANNED_ROWS, RegressionRules
from queryprof.analysis.call_sites import Function, call_site, find_helpers
from queryprof.analysis.plans import Steps, plan_signs, plans_by_statement
from queryprof.analysis.totals import group_aggregates
from queryprof.comparing.random_names import fold_random_names
from queryprof.model import BASELINE_FIGURES, Aggregate, Frame, Plan
from queryprof.operations import STATEMENT_OPERATIONS


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """One call site of a statement: its frame, its caller, and its number of executions."""

    frame: Frame | None
    caller: Frame | None
    executions: int


@dataclass(frozen=True, slots=True)
class StatementFigures:
    """The figures of one statement in one test.

    Attributes:
        vm_steps, full_scan_steps: sums over all executions; None if unknown.
        sites: the call sites, most executions first; not part of a baseline.
        plans: SQLite's plans of the statement, sorted; empty if unknown.
    """

    executions: int
    rows: int
    vm_steps: int | None
    full_scan_steps: int | None
    sites: tuple[SiteFigures, ...] = ()
    plans: tuple[Steps, ...] = ()

    @property
    def repeats(self) -> int:
        """The highest number of executions from one line, over all callers."""
        sums: dict[Frame | None, int] = {}
        for site in self.sites:
            sums[site.frame] = sums.get(site.frame, 0) + site.executions
        return max(sums.values(), default=self.executions)

    @property
    def scans_a_large_table(self) -> bool:
        return (self.full_scan_steps or 0) >= SCANNED_ROWS * self.executions > 0

    @property
    def scanned_tables(self) -> tuple[str, ...]:
        """The tables that the statement's plans read completely."""
        return tuple(sorted({table for plan in self.plans for table in plan_signs(plan).scans}))


OTHER = "(other)"
"""Stands for all statements that did not fit in the recording."""

UNKNOWN = "(unknown)"
"""Stands for statements that began before the recording."""

TestFigures = Mapping[str, StatementFigures]
"""The figures of one test by statement."""


def figures_of_test(
    aggregates: Iterable[Aggregate],
    rules: RegressionRules,
    plans: Iterable[Plan] = (),
    with_sites: bool = True,
    test_thread: str = "",
    script: str = "",
) -> dict[str, StatementFigures]:
    """Return the figures and plans of the statements that one test executed.

    Args:
        with_sites: whether to include the call sites. Finding call sites takes most of the time.
        test_thread: the thread that ran the test. Its calls without a frame of the program are
            skipped, because a framework made these calls for setup or cleanup.
        script: the file of the command that runs the tests. Its frames call all tests, so they
            count as frames of the framework.
    """
    met = plans_by_statement(plans)

    def is_frameworks(one: Aggregate) -> bool:
        first = one.path[0] if one.thread.name == test_thread and one.path else None
        return first is not None and (first.kind != "user" or first.file == script)

    everything = [
        a for a in aggregates if _is_counted_statement(a.statement) and not is_frameworks(a)
    ]
    helpers = find_helpers(everything) if with_sites else frozenset()
    found = {}
    for statement, group in sorted(group_aggregates(everything, lambda a: a.statement).items()):
        if rules.ignore.match(statement):
            continue
        began = [a for a in group if a.operation in STATEMENT_OPERATIONS and a.count]
        # An execution that began before the recording has VM steps but is not counted.
        ran = [a for a in group if a.count or a.vm_steps]
        counted = [a for a in ran if a.operation.startswith("execute")]
        known = bool(counted) and sum(a.counted for a in counted) == sum(a.count for a in counted)
        found[statement] = StatementFigures(
            executions=sum(a.count for a in began),
            rows=sum(a.rows for a in group),
            vm_steps=sum(a.vm_steps for a in counted) if known else None,
            full_scan_steps=sum(a.full_scan_steps for a in counted) if known else None,
            sites=_site_figures(began, helpers) if with_sites else (),
            plans=met.get(statement, ()),
        )
    return found


def _is_counted_statement(statement: str) -> bool:
    return statement in (OTHER, UNKNOWN) or not statement.startswith("(")


def _site_figures(began: list[Aggregate], helpers: frozenset[Function]) -> tuple[SiteFigures, ...]:
    places: dict[tuple[Frame | None, Frame | None], int] = {}
    for aggregate in began:
        site = call_site(aggregate.path, helpers)
        place = (site.frame, site.callers[0] if site.callers else None)
        places[place] = places.get(place, 0) + aggregate.count
    ranked = sorted(places.items(), key=lambda item: -item[1])
    return tuple(SiteFigures(*place, executions) for place, executions in ranked)


def figures_to_baseline(figures: TestFigures) -> dict[str, dict[str, Any]]:
    """Convert figures to the format of a baseline file. Unknown figures are omitted."""
    return {
        statement: {
            **{name: n for name in BASELINE_FIGURES if (n := getattr(one, name)) is not None},
            **({"plans": [list(plan) for plan in one.plans]} if one.plans else {}),
        }
        for statement, one in figures.items()
    }


def figures_from_baseline(numbers: Mapping[str, Mapping[str, Any]]) -> dict[str, StatementFigures]:
    """Convert one test of a baseline file to figures."""
    return {
        statement: StatementFigures(
            one.get("executions", 0),
            one.get("rows", 0),
            one.get("vm_steps"),
            one.get("full_scan_steps"),
            plans=tuple(tuple(plan) for plan in one.get("plans", ())),
        )
        for statement, one in numbers.items()
    }


def count_queries(figures: TestFigures) -> int:
    """Return the number of executions of all statements."""
    return sum(f.executions for f in figures.values())


def add_figures(parts: Sequence[TestFigures]) -> dict[str, StatementFigures]:
    """Add up the figures of consecutive parts of one test."""
    total: dict[str, StatementFigures] = {}
    for part in parts:
        for statement, new in part.items():
            old = total.get(statement)
            total[statement] = new if old is None else _sum_figures(old, new)
    return total


def fold_statement_names(figures: TestFigures) -> dict[str, StatementFigures]:
    """Replace random names in statements, so that texts are the same in every run. Add up
    statements that become equal. OTHER and UNKNOWN are skipped.
    """
    named = (item for item in figures.items() if item[0] not in (OTHER, UNKNOWN))
    return add_figures([{fold_random_names(s): _with_stable_plans(one)} for s, one in named])


def _with_stable_plans(figures: StatementFigures) -> StatementFigures:
    if not figures.plans:
        return figures
    plans = {tuple(fold_random_names(step) for step in plan) for plan in figures.plans}
    return replace(figures, plans=tuple(sorted(plans)))


def _sum_figures(a: StatementFigures, b: StatementFigures) -> StatementFigures:
    def sum_if_known(x: int | None, y: int | None) -> int | None:
        return None if x is None or y is None else x + y

    places: dict[tuple[Frame | None, Frame | None], int] = {}
    for site in (*a.sites, *b.sites):
        place = (site.frame, site.caller)
        places[place] = places.get(place, 0) + site.executions
    ranked = sorted(places.items(), key=lambda item: -item[1])
    return StatementFigures(
        a.executions + b.executions,
        a.rows + b.rows,
        sum_if_known(a.vm_steps, b.vm_steps),
        sum_if_known(a.full_scan_steps, b.full_scan_steps),
        tuple(SiteFigures(*place, executions) for place, executions in ranked),
        tuple(sorted({*a.plans, *b.plans})),
    )
