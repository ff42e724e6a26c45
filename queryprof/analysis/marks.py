"""Marks: the one thing about a statement's work that most likely should not be, if it costs.

A plan alone shows little: a sort of three rows is harmless, and a scan of a table that is needed
whole is right. A mark needs a cost: what is read, sorted or built against what is returned, and
the statement's time against the run.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from queryprof.analysis.baseline_rules import SCANNED_ROWS
from queryprof.analysis.plans import Steps, signs_of
from queryprof.analysis.totals import Totals
from queryprof.sql.clauses import clauses_of

INDEX, CORRELATED, SCAN, SORT = "index", "correlated", "scan", "sort"

LEAST_SHARE = 0.01
"""This share of the database time, and ..."""

LEAST_NS = 1_000_000
"""... this total time, at the least, are worth a mark."""

FEW_SCANNED_ROWS = 100
"""A scan of so many rows for one takes as long as the whole call does with an index (measured: 3.3
us of which 2.0 are won, from Python, in memory), ...
"""

ALL_SCANNED_ROWS = 100_000
"""... which is worth a mark where all executions together read so many."""

READ_FOR_ONE = 4
"""Rows read for each row returned, from which on more is read than is needed."""

MANY_ROWS = 1000
"""Many to sort, or to run a subquery for."""

SORT_STEPS = 8
"""VM steps of a sorter for each row that it takes, at the least; of which a LIMIT returns few."""

ROW_STEPS = 30
"""VM steps that reading, sorting and returning a row take at the most, when all goes well."""

_CORRELATED = re.compile(r"CORRELATED ")


@dataclass(frozen=True, slots=True)
class Mark:
    """What is wrong with a statement's work.

    Attributes:
        kind: INDEX (SQLite builds one each time), CORRELATED (a subquery that runs for each row),
            SCAN or SORT.
        work: rows read or built, or VM steps (CORRELATED), of one execution; None: unknown.
        returned: rows of one execution.
        is_repeated: whether the statement ran more than once.
        skips: whether the rows that are read and not returned may be those that OFFSET leaves out.
    """

    kind: str
    work: float | None
    returned: float
    is_repeated: bool
    skips: bool = False


def mark_of(statement: str, plans: tuple[Steps, ...], totals: Totals, share: float) -> Mark | None:
    """The mark of a statement, or None.

    Args:
        plans: the statement's plans; empty when they are unknown.
        share: of the database time.
    """
    if share < LEAST_SHARE or totals.self_ns < LEAST_NS or not totals.executions:
        return None
    for kind, work in _candidates(plans, totals):
        return Mark(
            kind,
            work,
            totals.rows_each or 0.0,
            totals.executions > 1,
            kind == SCAN and clauses_of(statement).skips,
        )
    return None


def _candidates(plans: tuple[Steps, ...], totals: Totals) -> list[tuple[str, float | None]]:
    """The kinds of marks whose cost is high, the most important first, with their work."""
    returned = totals.rows_each or 0.0
    vm_steps, read = totals.vm_steps, totals.full_scan_steps
    built = totals.automatic_index_rows
    is_slow = totals.counted == 0 and (totals.mean_ns or 0) >= LEAST_NS  # the counters are unknown
    works_too_much = vm_steps is not None and vm_steps >= ROW_STEPS * max(returned, MANY_ROWS)
    reads_many = read is not None and read * totals.executions >= ALL_SCANNED_ROWS
    least_read = FEW_SCANNED_ROWS if reads_many else SCANNED_ROWS
    reads_too_much = read is not None and read >= max(least_read, READ_FOR_ONE * returned)
    sorts_many = returned >= MANY_ROWS or (
        (vm_steps or 0) >= ROW_STEPS * returned + SORT_STEPS * MANY_ROWS
        and not _only_distinct(plans)
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
        if (is_dear and _is_seen(kind, plans))
        or ((is_dear or (is_slow and kind != SCAN)) and _is_planned(kind, plans))
    ]


def _is_planned(kind: str, plans: tuple[Steps, ...]) -> bool:
    return any(marked_step(plan, kind) is not None for plan in plans)


def _is_seen(kind: str, plans: tuple[Steps, ...]) -> bool:
    """Whether the counters alone show it, where the plans are unknown."""
    return kind in (SCAN, INDEX) and not plans


def _only_distinct(plans: tuple[Steps, ...]) -> bool:
    """DISTINCT keeps one row of each kind, and no order; also count(DISTINCT)."""
    return all(
        what.rstrip(")").endswith("DISTINCT") for plan in plans for what in signs_of(plan).temporary
    )


def marked_step(plan: Steps, kind: str) -> int | None:
    """The step of a plan that a mark is about, by its number; None: there is none."""
    found = [number for number, step in enumerate(plan) if _is_of(step.strip(), plan, kind)]
    if kind == CORRELATED:
        found = [number for number in found if _reads_all(plan, number)]
    if not found:
        return None
    return found[-1] if kind == SCAN else found[0]  # of nested loops the inner one


def _reads_all(plan: Steps, number: int) -> bool:
    """Whether a subquery reads a table from end to end, or builds an index; with one that is there
    it takes no longer than a join does.
    """
    depth = _depth(plan[number])
    inside = itertools.takewhile(lambda step: _depth(step) > depth, plan[number + 1 :])
    signs = signs_of(tuple(inside))
    return bool(signs.scans or signs.index_scans or signs.automatic_indexes)


def _depth(step: str) -> int:
    return len(step) - len(step.lstrip())


def _is_of(step: str, plan: Steps, kind: str) -> bool:
    if kind == CORRELATED:
        return bool(_CORRELATED.match(step))
    signs = signs_of((step,))
    if kind == INDEX:
        return bool(signs.automatic_indexes)
    if kind == SORT:
        return bool(signs.temporary)
    whole = signs_of(plan)
    scanned = {*whole.scans, *whole.index_scans}
    return bool(scanned.intersection((*signs.scans, *signs.index_scans)))
