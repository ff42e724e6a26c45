"""Findings about statements, and kinds of statements, that take much of the time and that no other
rule explains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queryprof.analysis.call_sites import place_of
from queryprof.analysis.units import average, counted, duration, each_if_several, percent
from queryprof.analysis.units import rows_in_words as rows_of
from queryprof.findings import shares
from queryprof.findings.finding import UNKNOWN_FAULT, Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import (
    FEW,
    HeavyStatementCause,
    cause_of_heavy_statement,
    python_calls_note,
)
from queryprof.findings.maintenance import MAINTENANCE_KINDS, is_schema_read
from queryprof.findings.many_rows import cause_of_many_rows
from queryprof.findings.program import Program
from queryprof.findings.rewritten_tables import rewritten_table
from queryprof.findings.schema_changes import is_schema_change, repeats_schema_changes
from queryprof.sql.tokens import tokens_of

AWAITED = {
    "sqlite": "aiosqlite",
    "postgresql": "psycopg.AsyncConnection or asyncpg",
    "mysql": "aiomysql",
    "oracle": "oracledb.AsyncConnection",
}
"""Async drivers by database system."""


def off_loop_advice(program: Program, statement: str) -> str:
    """Return how to keep an event loop from waiting for a statement."""
    return (
        f"Run the query outside the event loop: {_async_driver_advice(program, statement)}await"
        " asyncio.to_thread(function, ...). Also make the query faster."
    )


def off_loop_addition(program: Program, statement: str) -> str:
    """Return the same advice as an addition to another fix."""
    return (
        "alternative fix: run the query unchanged outside the event loop:"
        f" {_async_driver_advice(program, statement)}asyncio.to_thread()"
    )


def _async_driver_advice(program: Program, statement: str) -> str:
    driver = AWAITED.get(program.report.profile.systems.get(statement, ""))
    return f"{driver}, or " if driver else ""


BLOCKED = "blocked the event loop for"
"""Words in the evidence if a statement ran on an event loop but its stalls are unknown."""

LONG_ON_LOOP_NS = 1_000_000
"""A query that takes this long is worth a thread: handing it over takes far less time."""

ON_LOOP_SHARE = 0.10
"""A query that blocks an event loop for at least this share of the time is reported."""

NAMED_SHARE = 0.20
"""Statements with at least this share of the time are reported even if no fault is known."""


def _runs_on_event_loop(program: Program, group: StatementGroup) -> bool:
    return any(
        (cause.statement, cause.site.frame) == (group.statement, group.site.frame)
        for loop in program.report.loops
        for function in loop.functions
        for cause in function.causes
    )


def find_heavy_queries(program: Program) -> Iterator[Finding | None]:
    """Find statements that take much of the time and that no earlier rule explains."""
    for group in program.groups:
        totals = group.totals
        share = program.share_of(group, group.work_ns)
        each_ns = group.steady_ns / max(totals.executions, 1)
        is_on_loop = each_ns >= LONG_ON_LOOP_NS and _runs_on_event_loop(program, group)
        is_of_kind = any(kind(group) for kind, _, _ in KINDS) or group.verb == "PRAGMA"
        is_known = group.reads or group.writes or is_of_kind
        if _has_known_fix(group):
            share = program.share_of(group, _saved_ns(group))
        if share < (ON_LOOP_SHARE if is_on_loop and group.reads else NAMED_SHARE):
            continue
        if not is_known:
            continue  # the driver's own statement, such as RESET ALL
        if is_on_loop and group.reads:
            yield program.make_finding(
                "blocked_loop",
                group,
                group.steady_ns,
                (
                    (
                        f"{counted(totals.executions, 'execution')} of {duration(each_ns)}"
                        f"{each_if_several(totals.executions)} {BLOCKED}"
                        f" {percent(min(1.0, share))} of the {program.whole}"
                    ),
                ),
                off_loop_advice(program, group.statement),
                program.innermost_loop(group),
                doubt="It is unknown whether other callbacks had to wait.",
                most=Severity.MEDIUM,
            )
            continue
        yield _heavy_finding(program, group, [group])


def find_heavy_statement_kinds(program: Program) -> Iterator[Finding | None]:
    """Find kinds of statements that together take much of the time."""
    for is_of_kind, _, _ in KINDS:
        groups = [group for group in program.all_groups if is_of_kind(group)]
        share = sum(program.share_of(one, one.work_ns) for one in groups)
        if len(groups) > 1 and share >= NAMED_SHARE:
            yield _heavy_finding(program, max(groups, key=lambda one: one.work_ns), groups)


def _is_commit(group: StatementGroup) -> bool:
    return "commit" in group.calls_by_operation or group.verb in ("COMMIT", "END")


def _is_connect(group: StatementGroup) -> bool:
    return "connect" in group.calls_by_operation


def _is_single_insert(group: StatementGroup) -> bool:
    runs = group.totals.executions
    return group.verb in ("INSERT", "REPLACE") and runs >= FEW and group.rows <= 2 * runs


MANY_ROWS_NS = 50_000_000
"""If a DuckDB executemany() call takes less time, it inserts fewer than 100 rows: 100 rows of three
columns took 77 ms on a busy machine.
"""


def _inserts_many(group: StatementGroup) -> bool:
    """Return whether executemany() inserts many rows with a plain INSERT. ON CONFLICT is not plain:
    for equal keys, a single statement would keep the first row, not the last.
    """
    words = {token.keyword for token in tokens_of(group.statement)}
    is_plain = not words & {"CONFLICT", "REPLACE", "IGNORE", "SELECT", "RETURNING"}
    calls = group.calls_by_operation.get("executemany", 0)
    return is_plain and calls > 0 and group.steady_ns >= MANY_ROWS_NS * calls


def _has_known_fix(group: StatementGroup) -> bool:
    return any(is_of_kind(group) for is_of_kind, _, _ in MAINTENANCE_KINDS)


def _saved_ns(group: StatementGroup) -> float:
    """Return the time saved if the program no longer executes the group's statement. For a read of
    the schema this is the time of the program's line, because there a library also builds objects
    from the schema.
    """
    timed = sum(one.executions for one in group.line_times)
    others = sum(one.others for one in group.line_times)
    if not is_schema_read(group) or others >= timed:
        return group.cost_ns  # the line also does other work, such as CREATE TABLE
    each_ns = sum(one.ns for one in group.line_times) / timed
    return max(group.cost_ns, each_ns * group.totals.statement_executions)


def _heavy_finding(
    program: Program, group: StatementGroup, groups: Sequence[StatementGroup]
) -> Finding | None:
    """Return a finding about statements of one kind, at the call site that takes most time."""
    runs, steps = sum(one.totals.executions for one in groups), group.totals.vm_steps
    took_ns = sum(one.work_ns for one in groups)
    saved_ns = sum(map(_saved_ns, groups)) if _has_known_fix(group) else took_ns
    each = each_if_several(runs)
    name, fix = _kind_and_advice(program, group, groups)
    system = program.report.profile.systems.get(group.statement, "")
    is_many = system == "duckdb" and _inserts_many(group)
    is_looped = _is_single_insert(group) and program.innermost_loop(group) is not None
    is_known = system in INSERTS_AT_ONCE and (is_looped or (is_many and group.verb == "INSERT"))
    if fix.startswith(UNKNOWN_FAULT) and (inside := python_calls_note(program, group)):
        fix = f"{UNKNOWN_FAULT} {inside}"
    if is_known:
        called = "executemany() call" if is_many else name
        evidence = f"{counted(runs, called)} of {duration(took_ns / max(1, runs))}{each}"
        gain_ns = took_ns * (shares.DUCKDB_EXECUTEMANY if is_many else 1 - 1 / runs)
        loop = program.innermost_loop(group)
        fix = INSERTS_AT_ONCE[system] if is_many else fix
        return program.make_finding("single_inserts", group, gain_ns, (evidence,), fix, loop)
    cause = (
        rewritten_table(program, group)
        or cause_of_heavy_statement(program, group)
        or cause_of_many_rows(program, group)
        or HeavyStatementCause(fix, round(saved_ns))
    )
    lines = len({place_of(one.site.frame) for one in groups})
    places = f" in {counted(lines, 'place')}" if lines > 1 else ""
    work = "" if steps is None else f", {average(steps)} VM steps{each}"
    returned = group.totals.rows_each if group.reads else None
    is_often = runs > 1 and (_has_known_fix(group) or repeats_schema_changes(program, groups))
    rows = "" if returned is None else f", {rows_of(returned)}{each}"
    return program.make_finding(
        cause.category,
        group,
        cause.gain_ns,
        (
            (
                f"{counted(runs, name)}{places} of {duration(took_ns / max(1, runs))}{each}{work}"
                f"{rows}"
            ),
            *cause.evidence,
            *_longest_execution_note(groups),
        ),
        cause.fix,
        program.innermost_loop(group),
        doubt="" if cause.fix.startswith(UNKNOWN_FAULT) else cause.doubt,
        most=cause.most if cause.fix is not fix or is_often else Severity.LOW,
    )


def _kind_and_advice(
    program: Program, group: StatementGroup, groups: Sequence[StatementGroup]
) -> tuple[str, str]:
    """Return the name of a kind of statements, and what to do about many of them."""
    runs = sum(one.totals.executions for one in groups)
    name, fix = next(
        ((name, fix) for is_of_kind, name, fix in KINDS if is_of_kind(group)),
        ("execution", f"{UNKNOWN_FAULT} Check the plan, and how often the statement runs."),
    )
    if repeats_schema_changes(program, groups):
        fix = SAME_SCHEMA
    elif is_schema_change(group) and len(groups) == 1 and runs > 1:
        fix = "The statement creates the same table or index each time: create it once."
    elif is_schema_change(group) and (runs == 1 or _is_in_transactions(program, groups)):
        fix = f"{UNKNOWN_FAULT} Check how often the statement runs."
    if _is_commit(group) and runs < FEW:
        fix = ONE_COMMIT
    if _is_single_insert(group):
        fix = INSERTS_AT_ONCE.get(program.report.profile.systems.get(group.statement, ""), fix)
    return name, fix


def _is_in_transactions(program: Program, groups: Sequence[StatementGroup]) -> bool:
    """Return whether some statements run in a larger transaction and so sync no file. In a
    transaction of its own, each statement would sync a file.
    """
    syncs = sum(one.files.syncs for one in groups)
    return bool(program.profile.file_work) and syncs < sum(one.totals.executions for one in groups)


def _longest_execution_note(groups: Sequence[StatementGroup]) -> Iterator[str]:
    """Return a sentence if a single execution took most of the time."""
    for totals in (one.totals for one in groups if one.outlier_ns):
        yield (
            f"the slowest execution took {duration(totals.max_ns)}; the median is"
            f" {duration(totals.p50_ns)} (queryprof report --show slowest)"
        )


ONE_COMMIT = (
    "A commit writes all changed pages and syncs the file: write less, or use a write-ahead log"
    " with PRAGMA synchronous = NORMAL, where COMMIT syncs nothing."
)

SAME_SCHEMA = (
    "These statements repeat the same schema changes: create the tables and indexes once. In tests,"
    " create them once for all tests, and end each test with a rollback."
)

KINDS = (
    (_is_commit, "commit", "Commit less often: one transaction for several writes."),
    (_is_connect, "connection", "Keep a connection open and reuse it, or use a pool."),
    (
        _is_single_insert,
        "single-row INSERT",
        "Insert many rows with one call: executemany().",
    ),
    *MAINTENANCE_KINDS,
    (
        is_schema_change,
        "schema change",
        "Put the schema changes in one transaction.",
    ),
)
"""Kinds of statements: a test, a name, and the advice if there are many."""

INSERTS_AT_ONCE = {
    "postgresql": "Insert many rows with one call: executemany(), or COPY.",
    "duckdb": (
        "Insert many rows with one statement: INSERT INTO t SELECT unnest(?), unnest(?), with a"
        " list of values for each column, or INSERT INTO t SELECT * FROM df, with a DataFrame. Load"
        " files with read_csv() or read_parquet()."
    ),
}
"""A faster way than single-row INSERTs, by database system."""
