"""Findings about covering indexes, which hold all columns that a query needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from queryprof.analysis.baseline_rules import SCANNED_ROWS
from queryprof.analysis.plans import Steps, plan_signs
from queryprof.analysis.units import average, counted, scanned_rows_in_words
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings import shares
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import view_computed_whole
from queryprof.findings.program import Program
from queryprof.findings.selectivity import (
    NEARLY_ALL,
    READS_MOST_ROWS,
    index_saving_shares,
    row_order_warning,
    rows_left_by_index,
)
from queryprof.findings.work import ONCE
from queryprof.planner.facts import IndexHelp

INDEX_USED = re.compile(r"(SCAN|SEARCH) \S+ USING INDEX (\S+)")

KEPT = re.compile(r"^(MATERIALIZE|CO-ROUTINE|RECURSIVE STEP|SETUP)\b")
"""Plan steps that store the rows of a part of the query (https://www.sqlite.org/eqp.html)."""

COVERED_FETCHES = 2
"""A query with at least this many page fetches per row looks up the rows one by one."""

SEARCHED_FETCHES = 1
"""The same limit for a query that returns at most half of the rows it reads, if a wider index would
cover it. Rows in the order of an index take one fetch per page, not per row.
"""

SCANNED_FETCHES = 0.5
"""The same limit for a scan of a whole index. Counting the rows took 0.99 fetches per row if the
table's order differs from the index's, and 0.01 if both have the same order.
"""

FETCH_NS = 3_000
"""A page fetch from SQLite's cache takes at most this long. Looking up a row of 1,000 bytes takes 3
fetches and 1.1 us, or up to 5.9 us on a busy machine. An index does not save the rest of the
statement's time, such as converters and row factories in Python.
"""

FETCHED = 0.25
"""If page fetches take a smaller share of a statement's time, an index does not help the
statement.
"""

LOOKED_UP_ROWS = 20

WIDTH = (
    "The gain is an estimate: such an index saved 76 to 99% of the time for rows of 300 bytes, and"
    " less than 30% for rows of 20 bytes. --prove measures the saving."
)

OUTER = 0.1
"""The most rows that an outer loop may scan, as a share of the looked-up rows."""

REPORTS = 10
"""A query with at most this many executions is a report, which has to group all rows."""

BETTER = 1.5
"""A wider index is proposed only if it saves this many times as much as a narrower one."""

ALL_ROWS = 0.99
"""If DISTINCT keeps at least this share of the rows, it removes hardly any."""

NO_DUPLICATES = (
    "DISTINCT removes hardly any rows. If no two rows can be equal, leave DISTINCT out. Or leave"
    " out the column that differs in each row."
    " In Django, the model's ordering adds such a column: call `.order_by()` before `.distinct()`."
    " Or create"
)
GROUPED = frozenset({"GROUP BY", "DISTINCT", "count(DISTINCT)"})
"""Reasons for sorting rows, as in the plan step USE TEMP B-TREE FOR ..."""


def find_scans_of_few_columns(program: Program) -> Iterator[Finding | None]:
    """Find full scans for sums, groups or distinct values that need few columns of the table."""
    for group in program.groups:
        totals = group.totals
        read = totals.full_scan_steps or 0.0
        index_help = program.index_help(group) if group.reads and read >= SCANNED_ROWS else None
        if not (index_help and index_help.code) or totals.executions <= ONCE:
            continue
        code = index_help.covering or index_help.code * index_help.covers
        if not code:
            continue
        won = _grouping_savings(group, index_help, read) or _lookup_savings(group, index_help, read)
        if won:
            yield program.make_finding(
                "missing_covering_index",
                group,
                group.steady_ns * won.share,
                (
                    (
                        f"{counted(totals.executions, 'execution')} read"
                        f" {scanned_rows_in_words(read)} of"
                        f" the table each to return {average(totals.rows_each)}"
                        f"{won.joined_rows_text}"
                    ),
                ),
                won.fix + row_order_warning(group),
                program.innermost_loop(group),
                code=code,
                doubt=won.doubt,
                most=Severity.MEDIUM if won.doubt else Severity.HIGH,
            )


@dataclass(frozen=True, slots=True)
class _Saving:
    """The share of a statement's time that a covering index saves."""

    share: float
    joined_rows_text: str
    fix: str
    doubt: str = ""


def _grouping_savings(group: StatementGroup, index_help: IndexHelp, read: float) -> _Saving | None:
    """Return the savings if the query sorts rows into groups, and the index already has the groups
    in order.
    """
    sorted_for = [
        what for plan in group.plans for what in plan_signs(plan).temporary if what in GROUPED
    ]
    is_report = group.totals.executions <= REPORTS
    if is_report or not sorted_for or not index_help.sorts_less or index_help.searches:
        return None
    narrow = (
        f" An index on {', '.join(dict.fromkeys(index_help.terms))} alone would be slower than the"
        " sort, because SQLite would look up each row in the table."
    )
    is_needless = sorted_for[0] == "DISTINCT" and (group.totals.rows_each or 0.0) >= ALL_ROWS * read
    return _Saving(
        shares.grouping_saving_share(read),
        f", and sort them for {sorted_for[0]}",
        f"{NO_DUPLICATES if is_needless else 'Create'} an index with all columns that the query"
        " reads, in the order below. Its rows are already grouped, so SQLite neither sorts them nor"
        " reads the table."
        f"{narrow * bool(index_help.covering)}",
    )


def _lookup_savings(group: StatementGroup, index_help: IndexHelp, read: float) -> _Saving | None:
    """Return the savings if an index on the compared columns alone leaves too many rows to look
    up.
    """
    makes_few = index_help.is_aggregate or group.is_distinct
    if not (group.clauses.chooses and makes_few and index_help.covering):
        return None
    left = rows_left_by_index(group, index_help)
    narrow, wide = (
        index_saving_shares(one, left, read)
        for one in (index_help, replace(index_help, covers=True))
    )
    if wide[0] < BETTER * narrow[0] or left.least > NEARLY_ALL * read:
        return None
    compared = ", ".join(dict.fromkeys(index_help.terms))
    return _Saving(
        wide[0],
        f", computed from about {average(left.least)} rows",
        "Create an index with all columns that the query reads, in the order below. SQLite then"
        f" does not read the table. An index on {compared} alone saves less, because SQLite"
        " looks up each remaining row in the table.",
        left.doubt if wide[1] < wide[0] / 2 else READS_MOST_ROWS if left.least > read / 2 else "",
    )


def find_missing_covering_indexes(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        totals = group.totals
        rows, pages = totals.rows_each or 0.0, totals.page_fetches
        found = [one for plan in group.plans for step in plan if (one := INDEX_USED.search(step))]
        if not (group.reads and pages and found) or view_computed_whole(group):
            continue
        used = found[-1]  # the index of the innermost loop
        read = totals.full_scan_steps or 0.0
        is_scan = used[1] == "SCAN"
        work = read if is_scan else max(rows, (totals.vm_steps or 0.0) / 12)
        if work < LOOKED_UP_ROWS or pages < SCANNED_FETCHES * work:
            continue
        if not is_scan and read > OUTER * work:
            continue  # the scan of an outer loop needs these steps
        index_help = program.index_help(group)
        code = index_help.widened if index_help else ""
        makes_few = bool(code and rows <= work / 2)
        searched = SEARCHED_FETCHES if makes_few else COVERED_FETCHES
        if not is_scan and pages < searched * work:
            continue
        fetched_ns = totals.executions * pages * FETCH_NS + group.files.read_ns
        if fetched_ns < FETCHED * group.steady_ns:
            continue
        added = shares.grouping_saving_share(read) if is_scan else shares.ADDED
        is_sure = makes_few and (is_scan or not any(map(_uses_temporary_table, group.plans)))
        about = "" if is_scan else "about "
        yield program.make_finding(
            "missing_covering_index",
            group,
            min(group.steady_ns * (added if is_sure else shares.COVERED), fetched_ns),
            (
                (
                    f"{average(pages)} page fetches for {about}{rows_of(work + is_scan)} per"
                    f" execution: SQLite looks up each row of the index {used[2]} in the table"
                ),
                used[0],
            ),
            (
                f"Add the other columns that the query reads to {used[2]}: then the index covers"
                " the query."
                + f" The new index replaces {used[2]}, which you can drop."
                * bool(code)
            ),
            code=code,
            doubt=_covering_index_doubt(is_sure, makes_few, is_scan),
            most=Severity.HIGH if is_sure and is_scan else Severity.MEDIUM,
        )


def _covering_index_doubt(is_sure: bool, makes_few: bool, is_scan: bool) -> str:
    if is_sure:
        return "" if is_scan else WIDTH
    if makes_few:
        return (
            "The gain is an estimate (half of the time): some of these pages hold sorted or"
            " temporary rows."
        )
    return "The gain is an estimate (half of the time). A wider index makes writes slower."


def _uses_temporary_table(plan: Steps) -> bool:
    """Return whether the plan stores rows in a temporary table: sorted rows, or a part of the
    query. The pages of that table are fetched as well.
    """
    return bool(plan_signs(plan).temporary) or any(KEPT.search(step) for step in plan)
