"""Findings from a PostgreSQL server: full table scans, and wrong estimates of rows.

A plan is valid for any parameters (EXPLAIN GENERIC_PLAN,
https://www.postgresql.org/docs/current/sql-explain.html). The server may choose another plan for
some values.
"""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.units import average, counted, duration, each_if_several, percent, shorten
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.model.postgresql import TableScan, UnindexedForeignKey
from queryprof.sql.clauses import all_comparisons_of
from queryprof.sql.operands import operand_column

MANY_ROWS, TIMES_RETURNED = 1000, 4
"""A scan is reported if it reads at least this many rows, and this many times the rows that it
keeps. analysis/marks.py has similar limits for scans in SQLite.
"""

FAR_TIMES = 10
"""An estimate is wrong if it is this many times too high or too low."""

WHOLE_FETCHES = frozenset({"execute", "fetchall", "next"})
"""If a statement has only these operations, the program is assumed to have fetched all rows."""

MIN_ROW_NS = 10
"""The shortest time for a scanned row. A row of a table of one column in memory took 50 ns
(1,000,000 rows, PostgreSQL 15 and 18), and a fifth of that on a faster machine. A faster execution
must have had another plan.
"""

MAX_CHARACTERS = 200
"""The most characters of a filter to show."""

GENERIC = "This is the generic plan: for some values, the server may choose another."
NOT_PROVED = f"{GENERIC} Create the index, then use EXPLAIN to see whether the server uses it."


def find_server_scans(program: Program) -> Iterator[Finding | None]:
    """Find statements for which the server scans a table to keep a few rows."""
    for group in program.groups:
        plan = program.server.plans.get(group.statement)
        scans = [one for one in plan.scans if _keeps_few_rows(program, group, one)] if plan else []
        if not plan or not scans:
            continue
        scan = max(scans, key=lambda one: one.share)
        read = scan.table_rows or 0.0
        runs = group.totals.statement_executions
        executions = counted(runs, "execution")
        rows = rows_of(group.totals.rows_each or 0)
        returned = f" returned {rows}{each_if_several(runs)}" if group.reads else ""
        along = f" along {scan.index}" if scan.index else ""
        columns = scan.equals
        table = next(one for one in plan.tables if one.name == scan.table)
        yield program.make_finding(
            "full_scan",
            group,
            _time_on_server_ns(program, group) * scan.share * (1 - scan.rows / read),
            (
                (
                    f"PostgreSQL reads all {rows_of(read)} of {scan.table}{along}, and expects"
                    f" {rows_of(scan.rows)} after the filter"
                    f" {shorten(scan.filter, MAX_CHARACTERS)}"
                ),
                f"{executions}{returned}",
                f"{percent(scan.share)} of the plan's cost",
                *server_time_note(program, group),
            ),
            "Create an index on the filtered columns."
            if columns
            else (
                "Check whether an index could serve the filter: an index on its expression, or an"
                " index that also contains the joined columns."
            ),
            code=_create_index_sql(table.quoted, columns, table.is_partitioned) if columns else "",
            doubt=NOT_PROVED,
            most=Severity.HIGH if columns else Severity.MEDIUM,
        )


def find_unindexed_references(program: Program) -> Iterator[Finding | None]:
    """Find DELETEs, and UPDATEs of keys, that scan a referring table for each row to check a
    foreign key. EXPLAIN does not show these scans.
    """
    for group in program.groups:
        plan = program.server.plans.get(group.statement)
        if not plan or group.verb not in ("DELETE", "UPDATE") or not plan.tables:
            continue
        table = next((one for one in plan.tables if _changes_table(group, one.name)), None)
        keys = (
            [one for one in table.references if _may_check_reference_slowly(group, one)]
            if table
            else []
        )
        rows = max(group.rows, group.totals.statement_executions)
        least_ns = sum(MIN_ROW_NS * (one.rows or 0.0) for one in keys) * rows
        if not keys or group.steady_ns < least_ns:
            continue
        yield program.make_finding(
            "full_scan",
            group,
            group.steady_ns * (1 - MIN_ROW_NS / (group.steady_ns / rows)),
            (
                (
                    f"{counted(rows, 'row')} changed in {duration(group.steady_ns / rows)}"
                    f"{each_if_several(rows)}, longer than the plan explains"
                ),
                *(
                    f"a foreign key of {one.table} ({', '.join(one.columns)}) refers to the"
                    f" table and has no index: the server reads {rows_of(one.rows or 0)} per"
                    " changed row"
                    for one in keys
                ),
                *server_time_note(program, group),
            ),
            "Create an index on the referring columns.",
            code=" ".join(
                _create_index_sql(one.table, one.columns, one.is_partitioned) for one in keys
            ),
        )


def _may_check_reference_slowly(group: StatementGroup, reference: UnindexedForeignKey) -> bool:
    """Return whether a foreign key of a large table searches the rows that refer to a deleted or
    changed row.
    """
    changed = {
        operand_column(one.left)
        for one in all_comparisons_of(group.statement)
        if one.clause == "SET"
    }
    is_touched = group.verb == "DELETE" or not changed.isdisjoint(reference.keys)
    return is_touched and (reference.rows or 0) >= MANY_ROWS


def _create_index_sql(table: str, columns: tuple[str, ...], is_partitioned: bool) -> str:
    """Return SQL that creates the index without blocking writes. Partitioned tables do not allow
    CONCURRENTLY (https://www.postgresql.org/docs/current/sql-createindex.html).
    """
    how = "" if is_partitioned else "CONCURRENTLY "
    return f"CREATE INDEX {how}ON {table} ({', '.join(columns)});"


def _changes_table(group: StatementGroup, table: str) -> bool:
    return table.rpartition(".")[2] == group.clauses.changed


def find_bad_row_estimates(program: Program) -> Iterator[Finding | None]:
    """Find plans of several tables for which the server expects many more, or many fewer, rows than
    the query returns. This rule uses only statements without parameters, because the expected rows
    depend on the values.
    """
    for group in program.groups:
        plan = program.server.plans.get(group.statement)
        returned = group.totals.rows_each
        if not plan or plan.parameters or returned is None or len(plan.tables) < 2:
            continue
        if not group.reads or not _fetches_all_rows(group):
            continue
        more, fewer = max(returned, plan.rows, 1.0), max(min(returned, plan.rows), 1.0)
        if more < FAR_TIMES * fewer or more < MANY_ROWS:
            continue
        names = ", ".join(one.quoted for one in plan.tables)
        yield program.make_finding(
            "bad_estimate",
            group,
            _time_on_server_ns(program, group),
            (
                (
                    f"PostgreSQL expects {rows_of(plan.rows)}, but the query returns"
                    f" {average(returned)} on average"
                    f" ({counted(group.totals.statement_executions, 'execution')})"
                ),
                *(_statistics_age(one.name, one.changed, one.analyzed) for one in plan.tables),
                *server_time_note(program, group),
            ),
            f"Run ANALYZE {names}. If the statistics are new: CREATE STATISTICS on columns that"
            " depend on each other, or on an expression.",
            doubt="The gain of a better estimate is unknown.",
            most=Severity.MEDIUM,
        )


def _keeps_few_rows(program: Program, group: StatementGroup, scan: TableScan) -> bool:
    """Return whether a scan reads many rows to keep a few, and the executions took long enough for
    such a scan.
    """
    read = scan.table_rows or 0.0
    if not scan.filter or read < MANY_ROWS or read < TIMES_RETURNED * scan.rows:
        return False
    executions = group.totals.statement_executions
    least_ns = MIN_ROW_NS * read * scan.loops
    is_likely = bool(executions) and _time_on_server_ns(program, group) >= least_ns * executions
    # The query returns most rows that it reads, whatever the planner expects.
    returns_all = group.reads and (group.totals.rows_each or 0) * TIMES_RETURNED > read
    return is_likely and not returns_all


def _fetches_all_rows(group: StatementGroup) -> bool:
    """Return whether the program fetched all rows of the executions."""
    return group.calls_by_operation.keys() <= WHOLE_FETCHES and bool(group.rows)


def _time_on_server_ns(program: Program, group: StatementGroup) -> float:
    """Return the most time that the executions take on the server: the round trip, or the mean that
    the server reports.
    """
    time = program.server.times.get(group.statement)
    if time is None:
        return group.steady_ns
    return min(group.steady_ns, time.mean_ns * group.totals.statement_executions)


def server_time_note(program: Program, group: StatementGroup) -> tuple[str, ...]:
    """Return the server's time and the round trip; empty if unknown."""
    time = program.server.times.get(group.statement)
    if time is None or not group.totals.statement_executions:
        return ()
    each_ns = group.self_ns / group.totals.statement_executions
    since = f" since {program.server.since}" if program.server.since else ""
    return (
        (
            f"mean server time {duration(time.mean_ns)} ({counted(time.calls, 'call')} by all"
            f" programs{since}); this program waited {duration(each_ns)} per execution"
        ),
    )


def _statistics_age(table: str, changed: int | None, analyzed: str) -> str:
    if not analyzed:
        return f"{table} was never analyzed"
    since = f", and {rows_of(changed)} have changed since" if changed else ""
    return f"{table} was analyzed on {analyzed}{since}"
