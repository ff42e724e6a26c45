"""Findings about large values that are read or written and may not be needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from queryprof.analysis.call_sites import Function
from queryprof.analysis.units import average, counted, each_if_several, format_bytes
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.findings.transactions import (
    changes_by_function,
    changes_sharing_functions,
    commits_of,
)
from queryprof.sql.tokens import tokens_of

LARGE_ROW_FETCHES = 8
"""A row that takes at least this many page fetches has values on overflow pages
(https://www.sqlite.org/fileformat2.html#ovflpgs). Finding a row in an index and then in its table
takes fewer fetches: 6.9 for 20 rows of 60 bytes, in the order of the index.
"""

SCANNED_ROW_FETCHES = 3
"""The same limit for a scan of one table. A row of up to 4,500 bytes takes 0.03 to 1.1 page
fetches, a row of 8,000 bytes 2.0, and a row of 12,000 bytes 3.0 (SQLite 3.40, 4,096-byte pages).
"""

FEW_ROWS, MIN_ROWS = 2, 100
"""The fewest rows per execution, and the fewest rows of all executions together. A program that
reads fewer rows probably needs their large values.
"""

STEPS_OF_ROW = 12
"""The fewest VM steps for a row that is read and skipped."""

LARGE_WRITE_BYTES, LARGE_WRITE_PAGES = 256 * 1024, 64
"""An UPDATE changes large values if it writes this many bytes, or fetches this many pages, per row.
A small row with all its indexes and journals takes a few pages.
"""

MIN_WRITES = 5

LEAVE_OUT = {
    "django": 'Skip them: `.defer("column")`, or `.only("column", ...)`.',
    "sqlalchemy": "Skip them: `.options(defer(Model.column))`, or `.options(load_only(...))`.",
    "peewee": "Skip them: `Model.select(Model.column, ...)`.",
}
"""How a query skips large values, by library."""

BEHIND = (
    " SQLite also reads a large value to reach a column after it: put large columns last, or in"
    " their own table."
)


def find_large_values_read(program: Program) -> Iterator[Finding | None]:
    """Find queries that return many rows with values on overflow pages."""
    for group in program.groups:
        if not reads_large_rows(group):
            continue
        totals = group.totals
        rows, pages = totals.rows_each or 0.0, totals.page_fetches or 0.0
        read = _rows_read(group)
        library = program.timed_library(group.statement)
        each = each_if_several(totals.executions)
        yield program.make_finding(
            "large_values",
            group,
            group.cost_ns * (1 - read / pages),
            (
                (
                    f"{counted(totals.executions, 'execution')} with {rows_of(rows)} and"
                    f" {average(pages)} page fetches{each}"
                ),
            ),
            LEAVE_OUT.get(library, "List only the columns that you need in SELECT.") + BEHIND,
            program.innermost_loop(group),
            doubt="The program may need the large values.",
            most=Severity.MEDIUM,
        )


def reads_large_rows(group: StatementGroup) -> bool:
    """Return whether a query returns many rows with values on overflow pages."""
    rows, pages = group.totals.rows_each or 0.0, group.totals.page_fetches or 0.0
    is_list = rows >= FEW_ROWS and rows * group.totals.executions >= MIN_ROWS
    least = SCANNED_ROW_FETCHES if _only_scans_a_table(group) else LARGE_ROW_FETCHES
    is_large = group.reads and is_list and pages >= least * _rows_read(group)
    return is_large and not _reads_unreturned_pages(group)


def _rows_read(group: StatementGroup) -> float:
    """Return the number of rows that an execution reads or skips."""
    totals = group.totals
    steps = (totals.vm_steps or 0.0) / STEPS_OF_ROW
    return max(totals.rows_each or 0.0, steps, totals.full_scan_steps or 0.0)


def _only_scans_a_table(group: StatementGroup) -> bool:
    """Return whether each plan only reads one table from its first row to its last."""
    steps = [plan[0].split() for plan in group.plans if len(plan) == 1]
    return bool(steps) and len(steps) == len(group.plans) and all(map(_is_plain_scan, steps))


def _is_plain_scan(words: list[str]) -> bool:
    return words[:1] == ["SCAN"] and not words[2:]


def _reads_unreturned_pages(group: StatementGroup) -> bool:
    """Return whether the query reads pages that belong to no returned row, because the query counts
    rows or reads a virtual table.
    """
    is_virtual = any("VIRTUAL TABLE" in step for plan in group.plans for step in plan)
    return is_virtual or any(one.named == "count" for one in tokens_of(group.statement))


def find_large_row_updates(program: Program) -> Iterator[Finding | None]:
    """Find UPDATEs of single rows that read or write large values."""
    by_function = changes_by_function(program)
    for group in program.groups:
        rows = group.totals.executions - group.totals.errors
        if group.verb != "UPDATE" or rows < MIN_WRITES or group.rows > 2 * rows:
            continue
        commits = commits_of(program, group, by_function)
        written = group.files.written_bytes + sum(one.files.written_bytes for one in commits)
        is_read = _reads_old_large_values(group)
        is_large = is_read or written >= LARGE_WRITE_BYTES * rows
        if not is_large or program.planner.triggers(group.statement):
            continue
        if commits and not is_read and _others_write_more(program, group, by_function):
            continue
        # how often files are synced depends on the number of transactions, not on the values
        synced_ns = group.files.sync_ns + sum(one.files.sync_ns for one in commits)
        yield program.make_finding(
            "large_values",
            group,
            max(0, group.work_ns + sum(one.work_ns for one in commits) - synced_ns),
            (
                (
                    f"{counted(rows, 'row')} changed one by one; each change and its commit write"
                    f" {format_bytes(written / rows)}"
                    + f" and fetch {average(group.totals.page_fetches or 0)} pages"
                    * is_read
                ),
            ),
            "An UPDATE reads the whole row, with its large values, and writes what has changed."
            " Move the parts that change to a separate table, and INSERT or UPDATE only those"
            " rows.",
            program.innermost_loop(group),
            doubt="" if is_read else "It is unknown whether the whole value changes each time.",
        )


def _reads_old_large_values(group: StatementGroup) -> bool:
    """Return whether an UPDATE fetches the pages of large values, without reading other rows."""
    totals = group.totals
    read = max((totals.vm_steps or 0.0) / STEPS_OF_ROW, totals.full_scan_steps or 0.0)
    return (totals.page_fetches or 0.0) >= max(LARGE_WRITE_PAGES, LARGE_ROW_FETCHES * read)


def _others_write_more(
    program: Program, group: StatementGroup, by_function: Mapping[Function, list[StatementGroup]]
) -> bool:
    """Return whether other statements of the same transactions change more rows. If so, the bytes
    that the commits write belong to the other statements.
    """
    others = [
        one
        for one in changes_sharing_functions(program, [group], by_function)
        if one.writes and one.statement != group.statement
    ]
    rows = sum(max(one.rows, one.totals.executions) for one in others)
    return rows > 2 * max(group.rows, group.totals.executions)
