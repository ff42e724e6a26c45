"""What a test asks of the database, and how that differs from a baseline.

Only figures without noise are kept: executions, rows, SQLite's steps and its query plans.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from queryprof.analysis.call_sites import Function, call_site, find_helpers
from queryprof.analysis.plans import SCANNED_ROWS, Steps, plans_by_statement, signs_of, worse_plans
from queryprof.analysis.totals import group_by
from queryprof.model import STATEMENT_OPERATIONS, Aggregate, Frame, Plan

REPEATS = 10
"""Executions of one statement from one call site in one test beyond which it is repeated: the
sign of a query in a loop (N+1)."""

IGNORED = r"SAVEPOINT|RELEASE|ROLLBACK TO|BEGIN"
"""Statements that frameworks add around tests; matched at the start of the statement."""


@dataclass(frozen=True, slots=True)
class Site:
    """A call site's part: the frame, what called it, and its executions."""

    frame: Frame | None
    caller: Frame | None
    executions: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One statement in one test.

    Attributes:
        vm_steps, full_scan_steps: of all its executions; None: unknown.
        sites: its call sites, most executions first; not part of a baseline.
        plans: the plans that SQLite had for it, sorted; empty: unknown.
    """

    executions: int
    rows: int
    vm_steps: int | None
    full_scan_steps: int | None
    sites: tuple[Site, ...] = ()
    plans: tuple[Steps, ...] = ()

    @property
    def repeats(self) -> int:
        """The most executions from one call site."""
        return max((site.executions for site in self.sites), default=self.executions)

    @property
    def scans_a_large_table(self) -> bool:
        return (self.full_scan_steps or 0) >= SCANNED_ROWS * self.executions > 0

    @property
    def scanned_tables(self) -> tuple[str, ...]:
        """The tables that its plans read from end to end."""
        return tuple(sorted({table for plan in self.plans for table in signs_of(plan).scans}))


TestFigures = Mapping[str, Figures]
"""Statement -> figures, of one test."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as worse.

    Attributes:
        fail_on: of counts (executions, rows, new statements), plans and vmsteps.
        ignore: a pattern of statements that are left out.
        vm_steps_tolerance: a share; between equal versions of SQLite it is 0.
    """

    fail_on: frozenset[str] = frozenset({"counts", "plans", "vmsteps"})
    ignore: re.Pattern[str] = re.compile(IGNORED)
    vm_steps_tolerance: float = 0.05


@dataclass(frozen=True, slots=True)
class Deviation:
    """A statement whose figures are not those of the baseline.

    Attributes:
        before: None: new; after: None: gone.
        reasons: what is worse, in the words of `fail_on`; empty when it is better.
    """

    statement: str
    before: Figures | None
    after: Figures | None
    reasons: tuple[str, ...]


def figures_of(
    aggregates: Iterable[Aggregate],
    rules: Rules,
    plans: Iterable[Plan] = (),
    with_sites: bool = True,
    test_thread: str = "",
) -> dict[str, Figures]:
    """The figures of what was recorded during one test, and the plans that were met.

    Args:
        with_sites: whether the call sites are wanted, which take longest to find.
        test_thread: the thread that ran the test. What it asked without any frame of the
            program's own is left out: a framework asked it, to prepare or clean up.
    """
    met = plans_by_statement(plans)
    everything = [
        a
        for a in aggregates
        if not a.statement.startswith("(")
        and not (a.thread.name == test_thread and a.path and a.path[0].kind != "user")
    ]
    helpers = find_helpers(everything) if with_sites else frozenset()
    found = {}
    for statement, group in sorted(group_by(everything, lambda a: a.statement).items()):
        if rules.ignore.match(statement):
            continue
        began = [a for a in group if a.operation in STATEMENT_OPERATIONS and a.count]
        counted = [a for a in began if a.operation.startswith("execute")]
        known = bool(counted) and sum(a.counters.counted for a in counted) == sum(
            a.count for a in counted
        )
        found[statement] = Figures(
            executions=sum(a.count for a in began),
            rows=sum(a.rows for a in group),
            vm_steps=sum(a.counters.vm_steps for a in counted) if known else None,
            full_scan_steps=sum(a.counters.full_scan_steps for a in counted) if known else None,
            sites=_sites(began, helpers) if with_sites else (),
            plans=met.get(statement, ()),
        )
    return found


def _sites(began: list[Aggregate], helpers: frozenset[Function]) -> tuple[Site, ...]:
    places: dict[tuple[Frame | None, Frame | None], int] = {}
    for aggregate in began:
        site = call_site(aggregate.path, helpers)
        place = (site.frame, site.callers[0] if site.callers else None)
        places[place] = places.get(place, 0) + aggregate.count
    ranked = sorted(places.items(), key=lambda item: -item[1])
    return tuple(Site(*place, executions) for place, executions in ranked)


def deviations(
    before: TestFigures, after: TestFigures, rules: Rules, same_sqlite: bool
) -> list[Deviation]:
    """Where a test differs from its baseline: what is worse first."""
    drift = 0.0 if same_sqlite else rules.vm_steps_tolerance
    found = []
    for statement in sorted({*before, *after}):
        old, new = before.get(statement), after.get(statement)
        if rules.ignore.match(statement):
            continue
        reasons = _worse(old, new, drift, rules.fail_on)
        if reasons or _better(old, new, drift):
            found.append(Deviation(statement, old, new, tuple(reasons)))
    return sorted(found, key=lambda d: (not d.reasons, d.before is not None, d.statement))


def _worse(
    before: Figures | None, after: Figures | None, drift: float, fail_on: frozenset[str]
) -> list[str]:
    if after is None:
        return []
    if before is None:
        return ["a new statement"] if "counts" in fail_on else []
    reasons = []
    if "counts" in fail_on:
        if after.executions > before.executions:
            reasons.append("more executions")
        if after.rows > before.rows:
            reasons.append("more rows")
    if "plans" in fail_on and worse_plans(before.plans, after.plans):
        reasons.append("a worse plan")
    if "vmsteps" in fail_on:
        if _more(before.full_scan_steps, after.full_scan_steps, drift):
            reasons.append("more full-scan steps")
        if _more(before.vm_steps, after.vm_steps, drift):
            reasons.append("more VM steps")
    return reasons


def _more(before: int | None, after: int | None, drift: float) -> bool:
    return before is not None and after is not None and after > before * (1 + drift)


def _better(before: Figures | None, after: Figures | None, drift: float) -> bool:
    if after is None or before is None:
        return after is None
    return (
        after.executions < before.executions
        or after.rows < before.rows
        or _more(after.vm_steps, before.vm_steps, drift)
        or _more(after.full_scan_steps, before.full_scan_steps, drift)
        or bool(worse_plans(after.plans, before.plans))
    )


def count_queries(figures: TestFigures) -> int:
    """Executions of all statements together."""
    return sum(f.executions for f in figures.values())


def add_figures(parts: Sequence[TestFigures]) -> dict[str, Figures]:
    """The figures of consecutive parts of one test."""
    total: dict[str, Figures] = {}
    for part in parts:
        for statement, new in part.items():
            old = total.get(statement)
            total[statement] = new if old is None else _sum(old, new)
    return total


def _sum(a: Figures, b: Figures) -> Figures:
    def both(x: int | None, y: int | None) -> int | None:
        return None if x is None or y is None else x + y

    places: dict[tuple[Frame | None, Frame | None], int] = {}
    for site in (*a.sites, *b.sites):
        place = (site.frame, site.caller)
        places[place] = places.get(place, 0) + site.executions
    ranked = sorted(places.items(), key=lambda item: -item[1])
    return Figures(
        a.executions + b.executions,
        a.rows + b.rows,
        both(a.vm_steps, b.vm_steps),
        both(a.full_scan_steps, b.full_scan_steps),
        tuple(Site(*place, executions) for place, executions in ranked),
        tuple(sorted({*a.plans, *b.plans})),
    )
