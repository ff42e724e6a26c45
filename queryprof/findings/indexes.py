"""Findings about existing indexes that do not help. These findings need the database's schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from queryprof.analysis.marks import ROW_STEPS
from queryprof.analysis.totals import Totals
from queryprof.analysis.units import average, counted, each_if_several
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings import shares
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.program import Program
from queryprof.model import Index, Schema
from queryprof.planner.facts import NO_INDEX
from queryprof.sql.clauses import comparisons_of
from queryprof.sql.operands import keywords_of, operand_column
from queryprof.sql.tokens import tokens_of

STEPS_PER_ROW = 2 * ROW_STEPS
MIN_STEPS = 1000
SEARCHING = frozenset({"=", "==", "<", ">", "<=", ">=", "IN", "BETWEEN"})
"""Comparisons for which SQLite can use an index."""

SCAN_STEPS = 10
"""The most VM steps per scanned row. A statement with more steps also does other work."""


def uses_excess_vm_steps(vm_steps: float | None, rows: float) -> bool:
    """Return whether an execution takes many more VM steps than its rows need."""
    return (vm_steps or 0.0) >= max(MIN_STEPS, STEPS_PER_ROW * (rows + 1))


def find_bad_index_choices(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        totals = group.totals
        steps, rows = totals.vm_steps or 0.0, totals.rows_each or 0.0
        if totals.full_scan_steps or steps < MIN_STEPS or steps < STEPS_PER_ROW * (rows + 1):
            continue
        used = {
            found[1]
            for plan in group.plans
            for step in plan
            if (found := re.search(r"USING (?:COVERING )?INDEX (\S+)", step))
        }
        for schema in program.schemas.values():
            other = _better_index(group.statement, used, schema)
            if other and not schema.has_statistics:
                is_ordered = "INDEXED" in keywords_of(tokens_of(group.statement))
                index_help = program.index_help(group)
                code = (
                    index_help.code if index_help and index_help.searches and not is_ordered else ""
                )
                tables = max(sum("SCAN" in s or "SEARCH" in s for s in p) for p in group.plans)
                yield program.make_finding(
                    "bad_index_choice",
                    group,
                    group.steady_ns * (1 - shares.needed_vm_steps_share(totals)),
                    (
                        (
                            f"{_vm_steps_in_words(totals)} using {', '.join(sorted(used))};"
                            f" {other.name} ({', '.join(other.columns)}) also fits, but without"
                            " statistics SQLite does not choose it"
                        ),
                    ),
                    (
                        "Remove INDEXED BY from the statement, and run ANALYZE. INDEXED BY"
                        " forces SQLite to use the named index."
                        if is_ordered
                        else (
                            "Create an index on all compared columns. Or run ANALYZE (or PRAGMA"
                            " optimize) once the tables are filled, which may be enough."
                            if code
                            else "Run ANALYZE (or PRAGMA optimize) once the tables are filled."
                        )
                    ),
                    program.innermost_loop(group),
                    code=code or "ANALYZE;" * (not is_ordered),
                    doubt="" if code else "The result of ANALYZE is unknown: --prove measures it.",
                    most=Severity.HIGH if code or tables > 1 else Severity.MEDIUM,
                )
                break


def _better_index(statement: str, used: set[str], schema: Schema) -> Index | None:
    taken = [index for index in schema.indexes if index.name in used]
    tables = {index.table for index in taken}
    compared = {
        operand_column(operand)
        for comparison in comparisons_of(statement)
        for operand in (comparison.left, comparison.right)
        if comparison.operator in SEARCHING
    }
    for index in schema.indexes:
        is_other = index.name not in used and not any(map(index.is_prefix_of, taken))
        if index.is_partial:
            # only the planner can tell whether the index holds all of the statement's rows
            continue
        if index.table in tables and is_other and index.columns[0].lower() in compared:
            return index
    return None


def _vm_steps_in_words(totals: Totals) -> str:
    rows = totals.rows_each or 0.0
    return (
        f"{counted(totals.executions, 'execution')} took {average(totals.vm_steps)} VM steps"
        f"{each_if_several(totals.executions)} to return {rows_of(rows)}"
    )


def find_stale_statistics(program: Program) -> Iterator[Finding | None]:
    """Find statements whose plan uses outdated row counts: tables have grown since ANALYZE."""
    for group in program.groups:
        totals = group.totals
        steps, rows = totals.vm_steps or 0.0, totals.rows_each or 0.0
        if not uses_excess_vm_steps(steps, rows):
            continue
        grown = program.stale_statistics(group.statement)
        if not grown or not program.planner.statistics_mislead(group.statement, group.plans):
            continue
        yield program.make_finding(
            "stale_statistics",
            group,
            group.steady_ns * (1 - shares.needed_vm_steps_share(totals)),
            (
                _vm_steps_in_words(totals),
                *grown,
            ),
            "Run ANALYZE now, and PRAGMA optimize when you close connections: SQLite chooses"
            " plans by the statistics of ANALYZE.",
            program.innermost_loop(group),
            code="ANALYZE;",
            doubt=(
                "Without the outdated statistics, SQLite chooses another plan; --prove measures"
                " what ANALYZE saves."
            ),
        )


def find_narrow_indexes(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        totals = group.totals
        steps, rows = totals.vm_steps or 0.0, totals.rows_each or 0.0
        if (totals.full_scan_steps or 0) * SCAN_STEPS > steps:
            continue  # the scan explains the steps
        if group.writes and program.planner.triggers(group.statement):
            continue  # its triggers explain the steps
        if not uses_excess_vm_steps(steps, rows):
            continue
        index_help = program.index_help(group)
        throws_all_away = rows < 1 and group.reads  # an aggregate always returns a row
        code = index_help.code if index_help and not totals.full_scan_steps else ""
        if not index_help or index_help.is_other or not (code or throws_all_away):
            continue
        searches = [step.strip() for plan in group.plans for step in plan if "SEARCH" in step]
        yield program.make_finding(
            "narrow_index",
            group,
            group.steady_ns * (1 - shares.needed_vm_steps_share(totals)),
            (
                _vm_steps_in_words(totals),
                *searches[:1],
            ),
            (
                f"Create an index on all compared{' and sorted' * index_help.sorts_less} columns:"
                f" {', '.join(index_help.terms)}."
                if code
                else NO_INDEX
            ),
            program.innermost_loop(group),
            code=code,
        )
