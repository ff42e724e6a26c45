"""Marks: the likeliest problem with a statement's work, if it costs a notable time.

A plan alone shows little. Sorting three rows is harmless, and scanning a table is right if the
query needs all of it. A statement gets a mark only if it is costly: it reads, sorts or builds much
more than it returns, and takes a notable share of the database time.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from queryprof.analysis.baseline_rules import SCANNED_ROWS
from queryprof.analysis.plans import PlanSigns, Steps, plan_signs
from queryprof.analysis.totals import Totals

INDEX, CORRELATED, SCAN, SORT = "index", "correlated", "scan", "sort"

MIN_SHARE = 0.01
"""A statement with a smaller share of the database time gets no mark."""

MIN_NS = 1_000_000
"""A statement with a shorter total time gets no mark."""

FEW_SCANNED_ROWS = 100
"""Scanning this many rows to find one takes longer than the rest of the call: 2.0 of 3.3 us,
measured from Python with a database in memory.
"""

ALL_SCANNED_ROWS = 100_000
"""A scan of FEW_SCANNED_ROWS or more gets a mark if all executions together read this many rows."""

READ_FOR_ONE = 4
"""If a statement reads more rows than this for each row it returns, it reads more than it needs."""

MANY_ROWS = 1000
"""A sort of this many rows, or a subquery that runs for this many rows, is expensive."""

SORT_STEPS = 8
"""Sorting takes at least this many VM steps per row. This reveals sorts of many rows whose query
returns only a few (LIMIT).
"""

ROW_STEPS = 30
"""A good plan takes at most this many VM steps to read, sort and return a row."""

_CORRELATED = re.compile(r"CORRELATED ")


@dataclass(frozen=True, slots=True)
class Mark:
    """The likeliest problem of a statement.

    Attributes:
        kind: INDEX (SQLite builds an index each time), CORRELATED (a subquery runs for each row),
            SCAN or SORT.
        work: per execution, the rows read or built, or for CORRELATED the VM steps; None if
            unknown.
        returned: rows per execution.
        is_repeated: whether the statement ran more than once.
    """

    kind: str
    work: float | None
    returned: float
    is_repeated: bool


def mark_of(plans: tuple[Steps, ...], totals: Totals, share: float) -> Mark | None:
    """Return the mark of a statement, or None.

    Args:
        plans: the statement's plans; empty if unknown.
        share: the statement's share of the database time.
    """
    if share < MIN_SHARE or totals.self_ns < MIN_NS or not totals.executions:
        return None
    for kind, work in _costly_kinds(plans, totals):
        return Mark(kind, work, totals.rows_each or 0.0, totals.executions > 1)
    return None


def _costly_kinds(plans: tuple[Steps, ...], totals: Totals) -> list[tuple[str, float | None]]:
    """Return the kinds of marks that apply, each with its work (see Mark), most important first."""
    returned = totals.rows_each or 0.0
    vm_steps, read = totals.vm_steps, totals.full_scan_steps
    built = totals.automatic_index_rows
    is_slow = totals.counted == 0 and (totals.mean_ns or 0) >= MIN_NS  # without counters
    works_too_much = vm_steps is not None and vm_steps >= ROW_STEPS * max(returned, MANY_ROWS)
    reads_many = read is not None and read * totals.executions >= ALL_SCANNED_ROWS
    least_read = FEW_SCANNED_ROWS if reads_many else SCANNED_ROWS
    reads_too_much = read is not None and read >= max(least_read, READ_FOR_ONE * returned)
    sorts_many = returned >= MANY_ROWS or (
        (vm_steps or 0) >= ROW_STEPS * returned + SORT_STEPS * MANY_ROWS
        and not _only_distinct_needs_storage(plans)
    )
    costs: dict[str, tuple[bool, float | None]] = {
        INDEX: (built is not None and built >= SCANNED_ROWS, built),
        CORRELATED: (works_too_much, vm_steps),
        SCAN: (reads_too_much, read),
        SORT: (sorts_many, None),
    }
    return [
        (kind, work)
        for kind, (is_dear, work) in costs.items()
        if (is_dear and _is_shown_by_counters(kind, plans))
        or ((is_dear or (is_slow and kind != SCAN)) and _is_in_plan(kind, plans))
    ]


def _is_in_plan(kind: str, plans: tuple[Steps, ...]) -> bool:
    return any(marked_step(plan, kind) is not None for plan in plans)


def _is_shown_by_counters(kind: str, plans: tuple[Steps, ...]) -> bool:
    """Return whether the plans are unknown and SQLite's counters alone prove the mark."""
    return kind in (SCAN, INDEX) and not plans


def _only_distinct_needs_storage(plans: tuple[Steps, ...]) -> bool:
    """Return whether only DISTINCT needs temporary storage, as in count(DISTINCT). DISTINCT keeps
    one row per value, without an order.
    """
    return all(
        what.rstrip(")").endswith("DISTINCT")
        for plan in plans
        for what in plan_signs(plan).temporary
    )


@lru_cache(maxsize=4096)
def marked_step(plan: Steps, kind: str) -> int | None:
    """Return the number of the plan step that a mark is about, or None."""
    signs = [plan_signs((step.strip(),)) for step in plan]
    if kind == CORRELATED:
        return _first_subquery_that_reads_all(plan, signs)
    if kind == INDEX:
        found = [number for number, one in enumerate(signs) if one.automatic_indexes]
    elif kind == SORT:
        found = [number for number, one in enumerate(signs) if one.temporary]
    else:
        whole = plan_signs(plan)
        scanned = {*whole.scans, *whole.index_scans}
        found = [
            number
            for number, one in enumerate(signs)
            if not scanned.isdisjoint((*one.scans, *one.index_scans))
        ]
    if not found:
        return None
    return found[-1] if kind == SCAN else found[0]  # for SCAN, the innermost loop


def _first_subquery_that_reads_all(plan: Steps, signs: Sequence[PlanSigns]) -> int | None:
    """Return the number of the first subquery that scans a table or builds an index. With an
    existing index, a subquery is as fast as a join.
    """
    depths = [len(step) - len(step.lstrip()) for step in plan]
    reads = [bool(one.scans or one.index_scans or one.automatic_indexes) for one in signs]
    for number, step in enumerate(plan):
        if _CORRELATED.match(step.strip()):
            following = range(number + 1, len(plan))
            inside = itertools.takewhile(lambda one: depths[one] > depths[number], following)  # noqa: B023
            if any(reads[one] for one in inside):
                return number
    return None
