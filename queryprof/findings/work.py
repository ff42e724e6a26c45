"""Findings about the work of one execution: scans, sorts, subqueries, lookups in the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from queryprof.analysis.marks import INDEX, SCAN, marked_step
from queryprof.analysis.plans import signs_of
from queryprof.analysis.units import average, counted, rows_of_scan
from queryprof.analysis.units import rows as rows_of
from queryprof.findings.defeated import PREFIX
from queryprof.findings.finding import Finding, Severity, first_of
from queryprof.findings.groups import Group
from queryprof.findings.libraries import loaded_before
from queryprof.findings.program import Program
from queryprof.findings.scan_words import (
    index_fix,
    joined_rows_text,
    reads_json,
    stored_function,
)
from queryprof.findings.selectivity import (
    MANY_RETURNED,
    NEARLY_ALL,
    READS_MOST_ROWS,
    Left,
    is_aggregate,
    order_note,
    rows_left,
    wins_of,
)
from queryprof.planner.facts import Served, partial_note

BUILD_STEPS = 8
"""VM steps per row of an automatic index: Column (of two columns), Noop, Rowid, MakeRecord,
FilterAdd, IdxInsert, Next (EXPLAIN of such a statement; https://www.sqlite.org/opcode.html).
"""

MANY_LOOKED_UP = 100
"""At this many rows or more, a covering index saves more than an index on the compared columns:
0.99 instead of 0.79 for 400 of 40,000 rows.
"""

ONCE = 2
"""Up to this number of executions, a statement is a one-off report, whose scans and sorts are not
findings.
"""


def automatic_index(program: Program) -> Iterator[Finding | None]:
    for group in groups_with_mark(program, INDEX):
        totals = group.totals
        if totals.executions <= ONCE:
            continue  # creating an index takes as long
        built = totals.automatic_index_rows or 0.0
        yield program.finding(
            "automatic_index",
            group,
            group.steady_ns
            * min(1.0, BUILD_STEPS * built / totals.vm_steps if totals.vm_steps else 1.0),
            (
                (
                    f"{counted(totals.executions, 'execution')}, each builds an index of"
                    f" {rows_of(built)} and drops it"
                ),
                step_of(group, INDEX),
            ),
            unless_changed(program, group, "Create an index for the join."),
            code=code_of(program, group),
        )


def is_chosen_by_scan(group: Group, served: Served | None) -> bool:
    """Return whether a statement with OFFSET reads all rows to find its rows, although an index
    would find them.
    """
    is_known = group.skips and group.clauses.chooses and served is not None
    return bool(is_known and served and served.code and served.searches and not served.still_scans)


def full_scan(program: Program) -> Iterator[Finding | None]:
    for group in groups_with_mark(program, SCAN):
        if group.writes and not any(signs_of(plan).scans for plan in group.plans):
            yield _fired_scan(program, group)
            continue
        served = program.served(group)
        if _must_read_all(group, served):
            continue
        if group.writes and served and not (served.code or served.is_other):
            if not any("CORRELATED" in step for plan in group.plans for step in plan):
                yield _fired_scan(program, group)
            continue  # the statement scans its own table
        if served and served.code and not served.searches:
            continue  # an index would return sorted rows: see temp_btree_sort
        if served and not (served.code or served.is_other) and is_aggregate(group, served):
            continue  # no index is known, and it may add up all rows
        yield _scan(program, group, served)


def _must_read_all(group: Group, served: Served | None) -> bool:
    """Return whether a statement must read all rows, or reads them in order and stops early."""
    finds_end = bool(served and served.finds_end)
    is_chosen = is_chosen_by_scan(group, served)
    if not (group.clauses.chooses or finds_end) or (group.skips and not is_chosen):
        return True
    is_by_order = served is None or served.is_other or served.sorts_less
    often = group.totals.executions > ONCE
    return stops_early(group) and is_by_order and often and not is_chosen  # see temp_btree_sort


def _scan(program: Program, group: Group, served: Served | None) -> Finding | None:
    """Return the finding about a statement's own scan."""
    totals = group.totals
    read, returned = totals.full_scan_steps or 0.0, totals.rows_each or 0.0
    columns = ", ".join(dict.fromkeys(served.terms) if served else group.compared)
    left = rows_left(group, served)
    covering = _covering_index(group, served, left)
    wins = wins_of(replace(served, covers=True) if served and covering else served, left, read)
    is_unknown = wins[1] < wins[0] / 2
    index = index_fix(group, served, columns, is_unknown)
    doubt = _scan_doubt(group, served, left, bool(covering), is_unknown)
    hides_code = served and (served.still_scans or (is_unknown and not covering.code))
    return program.finding(
        "full_scan",
        group,
        group.steady_ns * wins[0],
        (
            (
                f"{counted(totals.executions, 'execution')} read {rows_of_scan(read)}"
                f"{' each' if totals.executions > 1 else ''} to"
                f" {'change' if group.writes else 'return'} {average(returned)}"
                f"{joined_rows_text(left.least, returned)}"
            ),
            step_of(group, SCAN),
            *partial_note(served),
        ),
        unless_changed(program, group, index + covering.fix + order_note(group) * bool(covering))
        + _and_loaded_before(program, group),
        program.loop_of(group),
        code="" if hides_code else covering.code or code_of(program, group),
        doubt=doubt,
        most=_highest_severity(group, served, bool(doubt) or is_unknown),
    )


def _scan_doubt(
    group: Group, served: Served | None, left: Left, is_covering: bool, is_unknown: bool
) -> str:
    """Return why an index may not help a scan; "" if it certainly does."""
    read, returned = group.totals.full_scan_steps or 0.0, group.totals.rows_each or 0.0
    index = served if served and served.code else None
    is_open = group.share_of_wildcards == 0.0
    by_range = served and served.by_range and returned < MANY_RETURNED and not served.row_steps
    reads_most = served and (is_covering or served.covers) and left.least > read / 2
    looks_up = index and not index.covers and returned >= MANY_FETCHED * read
    return first_of(
        (_is_once(group, served), "It ran once: a report may have to read all rows."),
        (index and index.by_prefix and not is_open, PREFIX),
        (by_range, BY_RANGE),
        (is_unknown, left.doubt),
        (reads_most, READS_MOST_ROWS),
        (looks_up, FETCHED),
        (_has_no_help(group, served), "No helpful index is known: it may have to read all rows."),
    )


BY_RANGE = "The index is searched by a range: --prove measures how much it leaves to read."

MANY_FETCHED = 0.05
"""An index may save little if a query returns at least this share of a table's rows. The cost of
looking up each row depends on the row's width and place.
"""

FETCHED = (
    "It returns 5% or more of the table, and SQLite would look up each of these rows separately (an"
    " index saved 23% of the time for 5% of the rows, and 2% for 7%). --prove measures."
)


@dataclass(frozen=True, slots=True)
class _Covering:
    """An index that also holds the columns that are added up, so that no row is looked up."""

    code: str = ""
    fix: str = ""

    def __bool__(self) -> bool:
        return bool(self.code)


def _covering_index(group: Group, served: Served | None, left: Left) -> _Covering:
    """Return the covering index for a statement that may leave many rows to look up."""
    makes_few = is_aggregate(group, served) or group.is_distinct
    if served is None or not served.covering or not makes_few or left.most < MANY_LOOKED_UP:
        return _Covering()
    if left.least > NEARLY_ALL * (group.totals.full_scan_steps or 0.0):
        return _Covering()
    return _Covering(
        served.covering, " With the other columns that it reads, SQLite does not read the table."
    )


def _and_loaded_before(program: Program, group: Group) -> str:
    """Return further advice if an ORM runs the statement for each object."""
    note = program.note_of(group)
    if not note or group.totals.executions <= ONCE:
        return ""
    return " " + loaded_before(program.library(group.statement), note)


def _is_once(group: Group, served: Served | None) -> bool:
    """Return whether the statement may be a one-off report. A foreign key's scan is not a report,
    and each row of an executemany() counts as an execution.
    """
    runs = group.rows if group.calls_of.get("executemany") else group.totals.executions
    return runs <= ONCE and not (served and served.by_reference)


def _fired_scan(program: Program, group: Group) -> Finding | None:
    """Return the finding about a scan that a write causes indirectly."""
    totals = group.totals
    return program.finding(
        "full_scan",
        group,
        group.steady_ns * (1 - 1 / max(totals.full_scan_steps or 0.0, 1)),
        (
            (
                f"each of {counted(totals.executions, 'execution')} scans"
                f" {rows_of_scan(totals.full_scan_steps or 0)} in full, although the statement"
                " itself scans nothing"
            ),
        ),
        "A trigger of its table, or a foreign key that refers to it, reads a table. Create an"
        " index on the column that the trigger compares, or on the referring column"
        " (REFERENCES).",
        program.loop_of(group),
    )


def unless_changed(program: Program, group: Group, fix: str) -> str:
    """Return the fix, or a sentence if the planner's plan differs from the program's."""
    served = program.served(group)
    if served is None or not served.is_other:
        return fix
    step = next((step.strip() for step in served.plan if "INDEX" in step), served.plan[0].strip())
    return (
        f"The schema or the statistics of ANALYZE have changed: its plan is now {step}. Record"
        " again."
    )


def _has_no_help(group: Group, served: Served | None) -> bool:
    """Return whether no fix is known: no index helps, and no column could store a function's result
    or a value inside JSON.
    """
    if served is None or served.code or served.is_other:
        return False
    return not stored_function(group.statement, served) and not reads_json(group.statement)


def _highest_severity(group: Group, served: Served | None, is_doubtful: bool) -> Severity:
    """Return the highest severity of a scan."""
    if _is_once(group, served) and _has_no_help(group, served):
        return Severity.LOW  # it may have to read all rows, and no index is known
    return Severity.MEDIUM if is_doubtful else Severity.HIGH


def sorts_less(program: Program, group: Group) -> bool:
    served = program.served(group)
    return bool(served and served.sorts_less)


def code_of(program: Program, group: Group) -> str:
    """Return the SQL that helps a group's statement; "" if none is known."""
    served = program.served(group)
    return served.code if served else ""


def stops_early(group: Group) -> bool:
    """Return whether the query sorts a table's rows to take the first ones. An index could return
    these rows in order.
    """
    sorts = any(signs_of(plan).temporary == ("ORDER BY",) for plan in group.plans)
    return sorts and group.clauses.limits and not group.clauses.groups


def groups_with_mark(program: Program, kind: str) -> Iterator[Group]:
    """Yield the groups with a mark of a kind."""
    for group in program.groups:
        if group.reads or group.writes:
            mark = group.mark
            if mark and mark.kind == kind:
                yield group


def _where_planned(group: Group) -> str:
    if not group.planned_here:
        return ""
    by = f" by SQLite {group.planned_by}, not the program's" if group.planned_by else ""
    return f" (planned on an empty copy of its schema{by})"


def step_of(group: Group, kind: str) -> str:
    """Return the plan step that a mark is about."""
    for plan in group.plans:
        at = marked_step(plan, kind)
        if at is not None:
            return plan[at].strip() + (_where_planned(group))
    return "its plan is unknown"
