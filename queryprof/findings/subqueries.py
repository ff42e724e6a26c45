"""Findings about subqueries that run for each row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from queryprof.analysis.marks import CORRELATED, MANY_ROWS
from queryprof.analysis.units import average, counted
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings import shares
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.indexes import SCAN_STEPS
from queryprof.findings.program import Program
from queryprof.findings.work import (
    fix_unless_plan_differs,
    groups_with_mark,
    helpful_index_sql,
    marked_plan_step,
)
from queryprof.sql.clauses import AGGREGATES, comparisons_of, tables_by_alias
from queryprof.sql.operands import functions_in, without_parentheses
from queryprof.sql.tokens import tokens_of

STEPS_OF_SEARCHES = 500
"""At this many VM steps per row or more, a subquery's searches take most of the time. A search for
one row takes about 20 steps, a running total over 2,000 rows 4,000 steps per row.
"""

STEPS_OF_ROWS = 3 * SCAN_STEPS
"""The same limit if no index helps the outer scan. At this limit, the outer scan takes at most a
third of the steps.
"""

NOT_CORRELATED = (
    "Write the subquery without the outer query's columns: join with a grouped query, find the keys"
    " in one query first, or compute running totals with a window function (sum(...) OVER (ORDER BY"
    " ...))."
)

EXISTING = (
    "Create an index on the columns that the subquery compares. Or find the keys in one query"
    " first: key IN (SELECT ...), or for NOT EXISTS, key NOT IN (SELECT ...) without NULL."
)

RUNNING_TOTAL = (
    "For each row, the subquery rereads all earlier (or later) rows. Compute the running value with"
    " a window function, sum(...) OVER (PARTITION BY ... ORDER BY ...), in a subquery over all"
    " rows, and filter its result."
)

LATEST_ROWS = (
    "For each row, the subquery searches its group for a later (or earlier) row. Number the rows"
    " once in a subquery, with row_number() OVER (PARTITION BY key ORDER BY date DESC), and keep"
    " the rows with number 1. Or join with SELECT key, max(date) ... GROUP BY key."
)

NUMBERED = {
    "django": (
        " In Django: `.annotate(number=Window(RowNumber(), partition_by=[...],"
        ' order_by=F("date").desc())).filter(number=1)`.'
    ),
}
"""How to number the rows of each group, by library."""


def find_correlated_subqueries(program: Program) -> Iterator[Finding | None]:
    for group in groups_with_mark(program, CORRELATED):
        totals, code = group.totals, helpful_index_sql(program, group)
        with_index = ", or create an index on the columns that the subquery compares"
        yield program.make_finding(
            "correlated_subquery",
            group,
            group.steady_ns * (1 - shares.needed_vm_steps_share(totals)),
            (
                (
                    f"{counted(totals.executions, 'execution')} of {average(totals.vm_steps or 0)}"
                    f" VM steps to return {rows_of(totals.rows_each or 0)}"
                ),
                marked_plan_step(group, CORRELATED),
            ),
            fix_unless_plan_differs(
                program,
                group,
                EXISTING
                if "EXISTS" in {token.keyword for token in tokens_of(group.statement)}
                else "Join with a grouped query (JOIN (SELECT key, count(*) ... GROUP BY key))"
                f"{with_index if code or not program.index_help(group) else ''}.",
            ),
            code=code,
        )
    yield from _find_searching_subqueries(program)


def _find_searching_subqueries(program: Program) -> Iterator[Finding | None]:
    """Find subqueries that search many rows by an index for each row, such as a running total. The
    plan looks good, but the number of steps is high.
    """
    for group in program.groups:
        totals = group.totals
        rows = max(totals.rows_each or 0.0, totals.full_scan_steps or 0.0, MANY_ROWS)
        steps = [step.strip() for plan in group.plans for step in plan if "CORRELATED" in step]
        if not steps or (totals.vm_steps or 0.0) < STEPS_OF_ROWS * rows:
            continue
        is_served = bool(program.index_help(group)) and bool(helpful_index_sql(program, group))
        least = STEPS_OF_SEARCHES if is_served or not totals.full_scan_steps else STEPS_OF_ROWS
        if (totals.vm_steps or 0.0) < least * rows:
            continue
        fix = _window_function_advice(program, group)
        yield program.make_finding(
            "correlated_subquery",
            group,
            group.steady_ns * (1 - shares.needed_vm_steps_share(totals)),
            (
                (
                    f"{counted(totals.executions, 'execution')} of {average(totals.vm_steps or 0)}"
                    f" VM steps: {average((totals.vm_steps or 0) / rows)} for each row"
                ),
                steps[0],
            ),
            fix or NOT_CORRELATED,
            program.innermost_loop(group),
            doubt="It is unknown how many of the steps belong to the subquery.",
            most=Severity.MEDIUM if fix else Severity.LOW,
        )


def _window_function_advice(program: Program, group: StatementGroup) -> str:
    """Return how to replace a subquery that compares each row with all rows of the table before or
    after it; "" if it does not.
    """
    compared = list(_compared_rows(group.statement))
    directions = {one for one in compared if one != "="}
    tokens = tokens_of(group.statement)
    words = [token.keyword for token in tokens]
    if len(directions) != 1 or "DISTINCT" in words:  # with both < and >, the rows are a range
        return ""
    if ("NOT", "EXISTS") in pairwise(words):
        of_library = NUMBERED.get(program.library(group.statement), "")
        return f"{LATEST_ROWS}{of_library}" if "=" in compared else ""
    is_running = any(one.upper() in AGGREGATES for one in functions_in(tokens))
    return RUNNING_TOTAL if is_running and "EXISTS" not in words else ""


def _compared_rows(statement: str) -> Iterator[str]:
    """Yield "<", ">" or "=" for each comparison of the same column of two rows of a table, such as
    `other.id <= row.id`.
    """
    aliases = tables_by_alias(statement)
    for one in comparisons_of(statement):
        sides = [without_parentheses(side) for side in (one.left, one.right)]
        names = [(side[-3].named, side[-1].named) for side in sides if len(side) == 3]
        if len(names) == 2 and one.operator[:1] in ("<", ">", "="):
            (table, column), (other, same) = names
            is_same = aliases.get(table, table) == aliases.get(other, other)
            if is_same and table != other and column == same:
                yield one.operator[:1]
