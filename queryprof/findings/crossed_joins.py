"""Findings about joins that combine each row of one table with each row of another."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from queryprof.analysis.units import average, counted, each_if_several
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.sql.tokens import tokens_of

STEPS_PER_ROW = 16
"""The most VM steps per joined row. A join of two tables took 13 steps with count(DISTINCT), and 7
to 9 without (SQLite 3.40 and 3.46).
"""

MULTIPLIED = 16
"""The fewest joined rows per row of the first table: 4 rows of one table times 4 of the other. With
fewer, two separate queries would still read at least half as many rows.
"""

MANY_ROWS = 1_000
"""With fewer joined rows in total, two separate queries would save hardly any time."""

UNKNOWN_ROWS = "queryprof does not know how many rows of each joined table match."

SEPARATE_AGGREGATES = (
    "Compute the aggregates of each table in their own subquery or query, such as (SELECT count(*)"
    " FROM {one} WHERE ...)."
)
AGGREGATES_OF = {
    "django": (
        "Compute the aggregate of each relation in its own query or `Subquery()`:"
        ' `dict(Model.objects.values_list("pk").annotate(Count("relation")))`.'
    ),
    "sqlalchemy": (
        "Compute the aggregate of each table in its own subquery:"
        " `select(func.count()).where(...).scalar_subquery()`."
    ),
    "peewee": "Compute the aggregate of each table in its own query, with `.group_by()`.",
}
CONDITION = "Add the condition that joins {one} with {other}, or query them separately."
SEPARATE_ROWS = "Query {one} and {other} separately, and combine the rows by key in Python."
ROWS_OF = {
    "sqlalchemy": "Load the collections with `selectinload()` in place of `joinedload()` or"
    ' `lazy="joined"`.',
    "django": "Load the relations with `.prefetch_related()` in place of one joined query.",
    "peewee": "Load the relations with `prefetch()` in place of one joined query.",
}
"""The fixes, by library."""


def find_crossed_joins(program: Program) -> Iterator[Finding | None]:
    """Find queries that join two tables which depend only on a third one."""
    for group in program.groups:
        joined, outer = _joined_rows(group), _outer_rows(group)
        runs = max(1, group.totals.statement_executions)
        if not group.reads or joined * runs < MANY_ROWS or joined < MULTIPLIED * outer:
            continue
        crossed = program.planner.crossed_tables(group.statement, group.plans)
        if not crossed:
            continue
        words = [one.keyword for one in tokens_of(group.statement)]
        is_known = "DISTINCT" in words and "GROUP" in words
        hides_rows = "DISTINCT" in words or group.clauses.limits
        is_summed = "GROUP" in words or (group.totals.rows_each or 0.0) <= 1
        one, other, *joined_to = crossed
        fixes, fix = (AGGREGATES_OF, SEPARATE_AGGREGATES) if is_summed else (ROWS_OF, SEPARATE_ROWS)
        if not joined_to:
            fixes, fix = {}, CONDITION
        yield program.make_finding(
            "duplicate_rows",
            group,
            group.cost_ns * (1 - 2 / sqrt(joined / outer)),
            (
                (
                    f"{counted(runs, 'execution')} joined every row of {one} with every row of"
                    f" {other}"
                    + (f", for each row of {joined_to[0]}" if joined_to else "")
                    + f": {_work_in_words(group, is_summed or hides_rows)}"
                ),
            ),
            fixes.get(program.library(group.statement), fix).format(one=one, other=other),
            program.innermost_loop(group),
            doubt=UNKNOWN_ROWS * (not is_known),
            most=Severity.HIGH if is_known else Severity.MEDIUM,
        )


def _work_in_words(group: StatementGroup, returns_fewer: bool) -> str:
    """Return the joined rows in words; or the VM steps, if the query returns fewer rows."""
    totals = group.totals
    rows, steps = totals.rows_each, totals.vm_steps or 0.0
    known = (
        f"{average(steps)} VM steps" if returns_fewer or rows is None else f"{average(rows)} rows"
    )
    return known + each_if_several(totals.statement_executions)


def _joined_rows(group: StatementGroup) -> float:
    """Return a lower bound of the joined rows per execution."""
    totals = group.totals
    return max(totals.rows_each or 0.0, (totals.vm_steps or 0.0) / STEPS_PER_ROW)


def _outer_rows(group: StatementGroup) -> float:
    """Return a lower bound of the rows that the join reads from its first table. A scan counts
    these rows, and GROUP BY returns one row for each.
    """
    words = [one.keyword for one in tokens_of(group.statement)]
    grouped = (group.totals.rows_each or 0.0) if "GROUP" in words else 0.0
    return max(1.0, grouped, group.totals.full_scan_steps or 0.0)
