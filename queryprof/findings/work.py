"""Findings about the work of one execution: scans, sorts, subqueries, lookups in the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from queryprof.analysis.marks import INDEX, SCAN, SORT_STEPS, marked_step
from queryprof.analysis.plans import plan_signs
from queryprof.analysis.units import (
    average,
    counted,
    each_if_several,
    scanned_rows_in_words,
)
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings.defeated import PREFIX
from queryprof.findings.finding import Finding, Severity, first_text_if_true
from queryprof.findings.groups import StatementGroup
from queryprof.findings.indirect_scans import (
    indirect_scan_finding,
    scans_only_indirectly,
    scans_other_tables,
)
from queryprof.findings.libraries import preload_advice
from queryprof.findings.program import Program
from queryprof.findings.scan_words import (
    excludes_growing_list,
    has_optional_condition,
    index_fix,
    joined_rows_in_words,
    reads_json,
    store_function_result_advice,
    united_tables_advice,
)
from queryprof.findings.selectivity import (
    MANY_RETURNED,
    NEARLY_ALL,
    READS_MOST_ROWS,
    RemainingRows,
    index_saving_shares,
    is_aggregate,
    row_order_warning,
    rows_left_by_index,
)
from queryprof.planner.facts import IndexHelp, partial_index_note

BUILD_STEPS = 8
"""VM steps per row of an automatic index: Column (of two columns), Noop, Rowid, MakeRecord,
FilterAdd, IdxInsert, Next (EXPLAIN of such a statement; https://www.sqlite.org/opcode.html).
"""

MANY_LOOKED_UP = 100
"""A covering index is worth proposing if at least this many rows match. Measured for 400 of 40,000
rows: it saves 99% of the time, a plain index 79%.
"""

ONCE = 2
"""Up to this number of executions, a statement is a one-off report, whose scans and sorts are not
findings.
"""


def find_automatic_indexes(program: Program) -> Iterator[Finding | None]:
    for group in groups_with_mark(program, INDEX):
        totals = group.totals
        if totals.executions <= ONCE:
            continue  # creating an index takes as long
        built = totals.automatic_index_rows or 0.0
        yield program.make_finding(
            "automatic_index",
            group,
            group.steady_ns
            * min(1.0, BUILD_STEPS * built / totals.vm_steps if totals.vm_steps else 1.0),
            (
                (
                    f"{counted(totals.executions, 'execution')} each built an index of"
                    f" {rows_of(built)} and dropped it"
                ),
                marked_plan_step(group, INDEX),
            ),
            fix_unless_plan_differs(program, group, "Create an index for the join."),
            code=helpful_index_sql(program, group),
        )


def reads_skipped_rows(group: StatementGroup, index_help: IndexHelp | None) -> bool:
    """Return whether a statement with OFFSET reads all rows of a table, although an index would
    find the rows that match.
    """
    is_known = group.skips_many_rows and group.clauses.chooses and index_help is not None
    return bool(
        is_known
        and index_help
        and index_help.code
        and index_help.searches
        and not index_help.still_scans
    )


def find_full_scans(program: Program) -> Iterator[Finding | None]:
    for group in program.groups:
        if scans_only_indirectly(group):
            yield indirect_scan_finding(program, group)
    for group in groups_with_mark(program, SCAN):
        index_help = program.index_help(group)
        if scans_other_tables(group, is_schema_known=index_help is not None):
            yield indirect_scan_finding(program, group)
            continue
        if _needs_all_rows(group, index_help) or _is_sort_finding(group, index_help):
            continue
        if group.writes and index_help and not (index_help.code or index_help.is_other):
            if not any("CORRELATED" in step for plan in group.plans for step in plan):
                yield indirect_scan_finding(program, group)
            continue  # the statement scans its own table
        if index_help and index_help.code and not index_help.searches:
            continue  # find_temp_btree_sorts proposes an index in sorted order
        if (
            index_help
            and not (index_help.code or index_help.is_other)
            and is_aggregate(group, index_help)
        ):
            continue  # no index is known, and the statement may add up all rows
        yield _scan_finding(program, group, index_help)


def _needs_all_rows(group: StatementGroup, index_help: IndexHelp | None) -> bool:
    """Return whether a statement has to read all rows: it has no condition, or OFFSET skips many
    rows.
    """
    finds_end = bool(index_help and index_help.finds_end)
    is_skipping = group.skips_many_rows and not reads_skipped_rows(group, index_help)
    return not (group.clauses.chooses or finds_end) or is_skipping


def _is_sort_finding(group: StatementGroup, index_help: IndexHelp | None) -> bool:
    """Return whether find_temp_btree_sorts reports the statement."""
    is_by_order = index_help is None or index_help.is_other or index_help.sorts_less
    if index_help and index_help.searches and _sorts_few_rows(group):
        return False
    is_frequent = group.totals.executions > ONCE
    is_chosen = reads_skipped_rows(group, index_help)
    return could_stop_early(group) and is_by_order and is_frequent and not is_chosen


def _sorts_few_rows(group: StatementGroup) -> bool:
    """Return whether at most a quarter of the scanned rows reach the sort. A row that the query
    skips takes at least two VM steps, and a row that it sorts at least SORT_STEPS more.
    """
    scanned = group.totals.full_scan_steps or 0.0
    sorted_rows = ((group.totals.vm_steps or 0.0) - 2 * scanned) / SORT_STEPS
    return sorted_rows <= scanned / 4


def _scan_finding(
    program: Program, group: StatementGroup, index_help: IndexHelp | None
) -> Finding | None:
    """Return the finding about a statement's own scan."""
    totals = group.totals
    read, returned = totals.full_scan_steps or 0.0, totals.rows_each or 0.0
    columns = ", ".join(dict.fromkeys(index_help.terms) if index_help else group.compared_columns)
    left = rows_left_by_index(group, index_help)
    covering = _covering_index(group, index_help, left)
    wins = index_saving_shares(
        replace(index_help, covers=True) if index_help and covering else index_help, left, read
    )
    is_unknown = wins[1] < wins[0] / 2
    united = united_tables_advice(group)
    index = united or index_fix(group, index_help, columns, is_unknown)
    doubt = _scan_doubt(group, index_help, left, bool(covering), is_unknown)
    hides_code = index_help and (index_help.still_scans or (is_unknown and not covering.code))
    return program.make_finding(
        "full_scan",
        group,
        (group.cost_ns if excludes_growing_list(group) else group.steady_ns) * wins[0],
        (
            (
                f"{counted(totals.executions, 'execution')} read {scanned_rows_in_words(read)}"
                f"{each_if_several(totals.executions)} to"
                f" {'change' if group.writes else 'return'} {average(returned)}"
                f"{joined_rows_in_words(left.least, returned)}"
            ),
            marked_plan_step(group, SCAN),
            *partial_index_note(index_help),
        ),
        fix_unless_plan_differs(
            program, group, index + covering.fix + row_order_warning(group) * bool(covering)
        )
        + _preload_advice(program, group),
        program.innermost_loop(group),
        code="" if hides_code or united else covering.code or helpful_index_sql(program, group),
        doubt=doubt,
        most=_highest_severity(group, index_help, bool(doubt) or is_unknown),
    )


def _scan_doubt(
    group: StatementGroup,
    index_help: IndexHelp | None,
    left: RemainingRows,
    is_covering: bool,
    is_unknown: bool,
) -> str:
    """Return why an index may not help a scan; "" if it certainly does."""
    read, returned = group.totals.full_scan_steps or 0.0, group.totals.rows_each or 0.0
    index = index_help if index_help and index_help.code else None
    is_open = group.wildcard_share == 0.0
    by_range = (
        index_help and index_help.by_range and returned < MANY_RETURNED and not index_help.row_steps
    )
    reads_most = index_help and (is_covering or index_help.covers) and left.least > read / 2
    looks_up = index and not index.covers and returned >= MANY_FETCHED * read
    return first_text_if_true(
        (
            _may_be_report(group, index_help),
            "The query ran once: a report may have to read all rows.",
        ),
        (index and index.by_prefix and not is_open, PREFIX),
        (by_range, BY_RANGE),
        (is_unknown, left.doubt),
        (reads_most, READS_MOST_ROWS),
        (looks_up, FETCHED),
        (
            _has_no_known_fix(group, index_help),
            "queryprof knows no helpful index. The query may have to read all rows.",
        ),
    )


BY_RANGE = "SQLite searches this index by a range. --prove measures how many rows remain to read."

MANY_FETCHED = 0.05
"""An index may save little if a query returns at least this share of a table's rows. The cost of
looking up a row depends on the width of the rows and on their order in the table.
"""

FETCHED = (
    "The query returns 5% or more of the table, and SQLite would look up each of these rows"
    " separately. In a test, an index saved 23% of the time for 5% of the rows, and 2% for 7%."
    " --prove measures the saving."
)


@dataclass(frozen=True, slots=True)
class _CoveringIndex:
    """An index that also holds the columns that are added up, so that no row is looked up."""

    code: str = ""
    fix: str = ""

    def __bool__(self) -> bool:
        return bool(self.code)


def _covering_index(
    group: StatementGroup, index_help: IndexHelp | None, left: RemainingRows
) -> _CoveringIndex:
    """Return the covering index for a statement that may leave many rows to look up."""
    makes_few = is_aggregate(group, index_help) or group.is_distinct
    if index_help is None or not index_help.covering or not makes_few or left.most < MANY_LOOKED_UP:
        return _CoveringIndex()
    if left.least > NEARLY_ALL * (group.totals.full_scan_steps or 0.0):
        return _CoveringIndex()
    return _CoveringIndex(
        index_help.covering,
        " With all columns that the query reads in the index, SQLite does not read the table.",
    )


def _preload_advice(program: Program, group: StatementGroup) -> str:
    """Return further advice if an ORM runs the statement for each object."""
    note = program.library_note(group)
    if not note or group.totals.executions <= ONCE:
        return ""
    return " " + preload_advice(program.library(group.statement), note)


def _may_be_report(group: StatementGroup, index_help: IndexHelp | None) -> bool:
    """Return whether the statement may be a one-off report. A foreign key's scan is not a report,
    and each row of an executemany() counts as an execution.
    """
    runs = group.rows if group.calls_by_operation.get("executemany") else group.totals.executions
    return runs <= ONCE and not (index_help and index_help.by_reference)


def fix_unless_plan_differs(program: Program, group: StatementGroup, fix: str) -> str:
    """Return the fix, or a sentence if the planner's plan differs from the program's."""
    index_help = program.index_help(group)
    if index_help is None or not index_help.is_other:
        return fix
    step = next(
        (step.strip() for step in index_help.plan if "INDEX" in step), index_help.plan[0].strip()
    )
    return (
        f"The schema or the statistics of ANALYZE have changed: the plan is now {step}. Record"
        " again."
    )


def _has_no_known_fix(group: StatementGroup, index_help: IndexHelp | None) -> bool:
    """Return whether no fix is known: no index helps, and no column could store a function's result
    or a value inside JSON.
    """
    if index_help is None or index_help.code or index_help.is_other:
        return False
    return not (
        store_function_result_advice(group.statement, index_help)
        or reads_json(group.statement)
        or has_optional_condition(group.statement)
        or excludes_growing_list(group)
    )


def _highest_severity(
    group: StatementGroup, index_help: IndexHelp | None, is_doubtful: bool
) -> Severity:
    """Return the highest severity of a scan."""
    if _may_be_report(group, index_help) and _has_no_known_fix(group, index_help):
        return Severity.LOW  # it may have to read all rows, and no index is known
    return Severity.MEDIUM if is_doubtful else Severity.HIGH


def index_sorts_less(program: Program, group: StatementGroup) -> bool:
    index_help = program.index_help(group)
    return bool(index_help and index_help.sorts_less)


def helpful_index_sql(program: Program, group: StatementGroup) -> str:
    """Return the SQL that helps a group's statement; "" if none is known."""
    index_help = program.index_help(group)
    return index_help.code if index_help else ""


def could_stop_early(group: StatementGroup) -> bool:
    """Return whether the query sorts a table's rows to take the first ones. An index could return
    these rows in order.
    """
    sorts = any(plan_signs(plan).temporary == ("ORDER BY",) for plan in group.plans)
    return sorts and group.clauses.limits and not group.clauses.groups


def groups_with_mark(program: Program, kind: str) -> Iterator[StatementGroup]:
    """Yield the groups whose worst plan problem is of a kind, such as SCAN (analysis/marks)."""
    for group in program.groups:
        if group.reads or group.writes:
            mark = group.mark
            if mark and mark.kind == kind:
                yield group


def _planned_elsewhere_note(group: StatementGroup) -> str:
    if not group.planned_here:
        return ""
    by = f" by SQLite {group.planned_by}; the program uses another version"
    return f" (planned on an empty copy of the schema{by * bool(group.planned_by)})"


def marked_plan_step(group: StatementGroup, kind: str) -> str:
    """Return the plan step that shows a problem of this kind."""
    for plan in group.plans:
        at = marked_step(plan, kind)
        if at is not None:
            return plan[at].strip() + (_planned_elsewhere_note(group))
    return "the plan is unknown"
