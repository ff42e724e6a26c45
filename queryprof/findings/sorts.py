"""Findings about sorts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queryprof.analysis.marks import SCAN, SORT
from queryprof.analysis.plans import plan_signs
from queryprof.analysis.units import average, counted, each_if_several, scanned_rows_in_words
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings import shares
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.indexes import SCAN_STEPS, uses_excess_vm_steps
from queryprof.findings.loop_shapes import loads_by_position
from queryprof.findings.program import Program
from queryprof.findings.selectivity import can_stop_early
from queryprof.findings.work import (
    ONCE,
    could_stop_early,
    fix_unless_plan_differs,
    groups_with_mark,
    helpful_index_sql,
    index_sorts_less,
    marked_plan_step,
)
from queryprof.sql.tokens import Token, tokens_of

AFTER_OFFSET = (
    " OFFSET still reads the rows that it skips. For later pages, continue after the last row"
    " of the previous page (WHERE key > ?)."
)
FEW_MATCH = (
    "queryprof does not know how many rows match the WHERE clause. If few rows match, the index"
    " makes the query slower. --prove measures the saving."
)


RANDOM = frozenset({"random", "rand"})
"""Functions that return a random number in SQLite, PostgreSQL and MySQL."""

RANDOM_KEYS = (
    "{sort} makes the database read and sort every row. Read the ids once, draw some of them in"
    " Python (random.sample()), and read only their rows."
)


def find_random_order(program: Program) -> Iterator[Finding | None]:
    """Find queries that sort a whole table in random order to return a few rows."""
    for group in program.groups:
        totals = group.totals
        is_few = group.reads and uses_excess_vm_steps(
            totals.vm_steps or 0.0, totals.rows_each or 0.0
        )
        if not is_few or not _takes_random_rows(tokens_of(group.statement)):
            continue
        is_of_django = program.library(group.statement) == "django"
        yield program.make_finding(
            "temp_btree_sort",
            group,
            group.steady_ns * (1 - shares.needed_vm_steps_share(totals)),
            (
                (
                    f"{counted(totals.executions, 'execution')} took"
                    f" {average(totals.vm_steps or 0)} VM steps{each_if_several(totals.executions)}"
                    f" to sort all rows and return {average(totals.rows_each)}"
                ),
            ),
            RANDOM_KEYS.format(sort='`.order_by("?")`' if is_of_django else "ORDER BY random()"),
            program.innermost_loop(group),
        )


def _takes_random_rows(tokens: Sequence[Token]) -> bool:
    """Return whether a statement is sorted by a random number, and returns a part of the rows."""
    sorts = [one.keyword == "ORDER" and not one.depth for one in tokens]
    place = sorts.index(True) if True in sorts else len(tokens)
    after = tokens[place + 2 : place + 4]  # ORDER BY
    is_limited = any(one.keyword == "LIMIT" for one in tokens[place:])
    return len(after) == 2 and after[0].named in RANDOM and after[1].text == "(" and is_limited


def find_temp_btree_sorts(program: Program) -> Iterator[Finding | None]:
    scanning = (group for group in groups_with_mark(program, SCAN) if could_stop_early(group))
    for group in (*groups_with_mark(program, SORT), *scanning):
        totals = group.totals
        limited = group.clauses.limits
        scanned = totals.full_scan_steps or 0
        index_help = program.index_help(group)
        is_matched = any("VIRTUAL TABLE" in step for plan in group.plans for step in plan)
        if not (index_help.sorts_less or index_help.is_other) if index_help else is_matched:
            continue  # no index has this order
        if loads_by_position(program, group):
            continue  # find_n_plus_one proposes one query with one sort
        takes_few = limited or (index_sorts_less(program, group) and _sorts_for_few_rows(group))
        may_be_few = bool(limited and scanned) and can_stop_early(group, index_help) is None
        read = f" and read {scanned_rows_in_words(scanned)}" if scanned else ""
        if totals.executions <= ONCE or not (
            limited or group.given.repeats or totals.executions > 10
        ):
            continue
        yield program.make_finding(
            "temp_btree_sort",
            group,
            group.steady_ns
            * (1 - shares.needed_vm_steps_share(totals) if takes_few else shares.SORT_SAVED_SHARE),
            (
                (
                    f"{counted(totals.executions, 'execution')} each took"
                    f" {average(totals.vm_steps)} VM steps{read} to return"
                    f" {rows_of(totals.rows_each or 0)}"
                ),
                marked_plan_step(group, SORT),
            ),
            fix_unless_plan_differs(
                program,
                group,
                f"Create an index in the order of {_clause_needing_sort(group)} (the compared"
                " columns first): the rows then come sorted"
                + (", and LIMIT stops after the first rows." if limited else "")
                + (AFTER_OFFSET if group.skips_many_rows else "")
                + (
                    (", and SQLite makes no more rows than the program fetches.")
                    if takes_few > limited
                    else ""
                )
                + ("" if takes_few else "."),
            ),
            code=helpful_index_sql(program, group) if index_sorts_less(program, group) else "",
            doubt=(
                FEW_MATCH
                if may_be_few
                else (
                    ""
                    if takes_few
                    else "The query returns all rows: the sort is only a part of its time."
                )
            ),
            most=Severity.HIGH if takes_few and not may_be_few else Severity.MEDIUM,
        )


def _clause_needing_sort(group: StatementGroup) -> str:
    """Return the clause that needs the sorted rows."""
    words = {word for plan in group.plans for word in plan_signs(plan).temporary}
    return "GROUP BY" if any("GROUP BY" in word for word in words) else "ORDER BY"


def _sorts_for_few_rows(group: StatementGroup) -> bool:
    """Return whether the query sorts for ORDER BY alone, and sorts many more rows than the program
    fetches.
    """
    totals = group.totals
    scanned = SCAN_STEPS * (totals.full_scan_steps or 0)
    is_plain = all(plan_signs(plan).temporary == ("ORDER BY",) for plan in group.plans)
    return (
        is_plain
        and not group.clauses.groups
        and uses_excess_vm_steps((totals.vm_steps or 0.0) - scanned, totals.rows_each or 0.0)
    )
