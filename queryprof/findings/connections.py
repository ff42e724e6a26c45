"""Findings about connections that are opened for a single query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from queryprof.analysis.call_sites import Function, Place, place_of
from queryprof.analysis.library_frames import THREAD_HANDOFF_DRIVERS
from queryprof.analysis.totals import add_aggregates
from queryprof.analysis.units import counted
from queryprof.findings import shares
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import SERVERS
from queryprof.findings.indexes import uses_excess_vm_steps
from queryprof.findings.libraries import is_unknown_library
from queryprof.findings.maintenance import is_maintenance
from queryprof.findings.program import Program
from queryprof.findings.span_repeats import FEW
from queryprof.operations import STATEMENT_OPERATIONS

CONNECT = "(connect)"

MAX_STATEMENTS = 2
"""With more statements per connection, the program does not open a connection per query."""

MIN_USED = 0.5
"""A function counts as the user of connections if it runs at least this many statements per
connection.
"""


SETUP = frozenset({"PRAGMA", "CREATE", "ATTACH", "SET"})
"""Statements that set up a connection. A connection that stays open runs them only once."""


def find_connection_per_query(program: Program) -> Iterator[Finding | None]:
    by_function = _groups_by_path_function(program)
    for group in program.groups:
        opened = group.calls_by_operation.get("connect", 0)
        if group.statement != CONNECT or opened < FEW:
            continue
        used, executed = _groups_using_connections(program, group, opened, by_function)
        if executed > MAX_STATEMENTS * opened:
            continue
        if 2 * program.database_file_count(one.statement for one in used) > opened:
            continue  # each file needs its own connection
        setup = [one for one in used if _is_connection_setup(one, opened)]
        words = " and ".join(sorted({one.verb for one in setup}))
        kind = "other statement" if words else "statement"
        is_one_each = executed <= opened
        is_server = any(program.profile.systems.get(one.statement, "") in SERVERS for one in used)
        how = "opens the database and reads the schema for its first statement"
        if is_server:
            how = "connects to the server and logs in"
        threads = tuple(_thread_per_connection_note(program, group))
        line_ns = opened * (group.line_ns or 0.0) if threads else 0.0  # the line starts the thread
        found = program.make_finding(
            "connection_per_query",
            group,
            max(group.totals.self_ns, line_ns) + _further_ns(used, setup),
            (
                (
                    f"{counted(opened, 'connection')} opened"
                    + f" for {counted(executed, kind)}" * (executed >= opened)
                    + f": each connection {how}"
                    + (f", and runs {words} again" if words else "")
                ),
                *threads,
            ),
            _connection_reuse_advice(program, group, is_one_each, is_server),
            program.innermost_loop(group),
            doubt=(
                ""
                if is_one_each
                else ("Each connection may serve one request, as in many frameworks.")
            ),
            most=Severity.HIGH if is_one_each else Severity.MEDIUM,
        )
        # The time of the thread, or of create_engine(), was not measured.
        is_least = bool(threads) or program.library(group.statement) == "sqlalchemy"
        yield replace(found, is_least=True) if found and is_least else found


def _further_ns(used: Iterable[StatementGroup], setup: Iterable[StatementGroup]) -> float:
    """Return the time in ns that connections cost beyond the calls that open them: closing them,
    setting them up, and reading the schema with their first query.
    """
    set_up = {one.statement for one in setup}
    closed = sum(one.totals.self_ns for one in used if "close" in one.calls_by_operation)
    first = sum(
        member.self_ns
        for one in used
        # queries with many VM steps spend their time elsewhere
        if one.reads and not _uses_excess_vm_steps(one) and one.statement not in set_up
        for member in one.members
        if member.operation in STATEMENT_OPERATIONS  # without the time for fetching rows
    )
    if any(one.verb == "CREATE" for one in setup):
        first = 0  # the CREATE already read the schema, so later queries do not pay for it
    return closed + first * shares.FIRST + sum(one.totals.self_ns for one in setup)


def _connection_reuse_advice(
    program: Program, group: StatementGroup, is_one_each: bool, is_server: bool
) -> str:
    library = program.library(group.statement)
    if library == "sqlalchemy":
        return (
            "Call create_engine() once for the program, with a pool that keeps connections (not"
            " NullPool): the pool keeps pool_size connections open, and closes further"
            " connections (max_overflow) after each use."
        )
    if is_unknown_library(library):
        return (
            f"{library} opens a connection for each call. Check its documentation for a way to keep"
            " one open, or call it less often."
        )
    has_own_thread = program.timed_library(group.statement) in THREAD_HANDOFF_DRIVERS
    if is_server or has_own_thread:
        return "Open one connection for the whole program, or use a connection pool."
    long = (
        "each thread (threading.local), each request"
        if is_one_each
        else "each thread (threading.local)"
    )
    return f"Open one connection for {long} or the whole program, and keep it."


def _is_connection_setup(group: StatementGroup, opened: int) -> bool:
    """Return whether the statement sets up connections, and runs for at least half of them."""
    is_setup = group.verb in SETUP and not is_maintenance(group.statement)
    return is_setup and group.totals.statement_executions >= MIN_USED * opened


def _uses_excess_vm_steps(group: StatementGroup) -> bool:
    return uses_excess_vm_steps(group.totals.vm_steps, group.totals.rows_each or 0.0)


def _thread_per_connection_note(program: Program, group: StatementGroup) -> Iterator[str]:
    library = program.timed_library(group.statement)
    if library in THREAD_HANDOFF_DRIVERS:
        yield (
            f"{library} also starts and ends a thread per connection; these times do not include"
            " the threads"
        )


def statements_on_connections(program: Program, connecting: Finding) -> set[tuple[str, Place]]:
    """Return the statements, with their call sites, that run on the connections of a finding."""
    by_function = _groups_by_path_function(program)
    return {
        (one.statement, place_of(one.site.frame))
        for group in program.groups
        if group.statement == CONNECT and group.site.frame == connecting.site.frame
        for one in _groups_using_connections(
            program, group, group.calls_by_operation.get("connect", 0), by_function
        )[0]
    }


def _groups_by_path_function(program: Program) -> Mapping[Function, list[StatementGroup]]:
    """Return, for each function, the statement groups that have it on a call path."""
    found: dict[Function, list[StatementGroup]] = defaultdict(list)
    for group in program.all_groups:
        for function in {
            (frame.file, frame.function) for one in group.members for frame in one.path
        }:
            found[function].append(group)
    return found


def _groups_using_connections(
    program: Program,
    connecting: StatementGroup,
    opened: int,
    by_function: Mapping[Function, list[StatementGroup]],
) -> tuple[list[StatementGroup], int]:
    """Return the statement groups that use the connections of `connecting`, and the number of their
    executions. The user is the innermost function that opens the connections and executes enough
    statements, directly or through helpers. The result has all groups of this function.
    """
    for function in dict.fromkeys((frame.file, frame.function) for frame in connecting.path):
        used = by_function.get(function, [])
        executed = sum(
            _executions_through_function(one, function)
            for one in used
            if (one.reads or one.writes) and not _is_connection_setup(one, opened)
        )
        if executed >= MIN_USED * opened:
            return used, executed
    return [], sum(
        one.totals.statement_executions for one in program.all_groups if one.reads or one.writes
    )


def _executions_through_function(group: StatementGroup, function: Function) -> int:
    """Return how often a statement is executed through a function."""
    through = [
        member
        for member in group.members
        if any((frame.file, frame.function) == function for frame in member.path)
    ]
    return add_aggregates(through).statement_executions
