"""Findings about rows that a program or its library writes, or awaits, one by one."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.library_frames import package_of
from queryprof.analysis.units import counted, duration, shorten
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import is_slow_on_server
from queryprof.findings.libraries import ONE_CHANGE, ONE_DELETE, ONE_INSERT
from queryprof.findings.library_calls import batched_call_advice
from queryprof.findings.line_words import line_time_in_words
from queryprof.findings.n_plus_one import parent_query
from queryprof.findings.program import Program
from queryprof.findings.side_by_side import parallel_threads_doubt, share_without_waits
from queryprof.findings.span_repeats import (
    FEW,
    repeats_by_statement_site,
    repeats_outside_or_in_each_span,
)
from queryprof.findings.transactions import has_own_commits

MAX_ROWS = 2
"""Statements with more rows are already batched. A row from RETURNING counts as a second row."""

SHOWN = 2
"""The number of functions to name."""

CHANGES = ("UPDATE", "DELETE")

FETCH_MANY = (
    "Await many rows at once: fetchall(), fetchmany(), or `async for row in cursor`, which fetches"
    " 64 at a time."
)
INSERT_MANY = "Await one executemany() for all rows, or for a few hundred at a time."

AT_ONCE = (
    "If SQL can compute the new values, change all rows with one {verb} (with a subquery, or"
    " UPDATE ... FROM). Otherwise, use one executemany()."
)
DELETE_AT_ONCE = (
    "If a WHERE can find all rows (IN (...), or a subquery), delete them with one DELETE."
    " Otherwise, use one executemany()."
)
"""The fixes for a program that uses no ORM."""


def find_single_row_inserts(program: Program) -> Iterator[Finding | None]:
    """Find loops that insert rows one by one, through a library that takes longer per row than the
    driver.
    """
    for group in _groups_in_row_loops(program, ("INSERT",)):
        library = program.library(group.statement)
        runs = group.totals.statement_executions
        if library in ONE_INSERT:
            # If the line was not timed, assume the driver's time: the library takes longer
            # (benchmarks/gains.py).
            is_timed = group.line_ns is not None
            saved_ns = group.cost_ns - group.steady_ns if is_timed else group.steady_ns
            yield program.make_finding(
                "single_inserts",
                group,
                share_without_waits(group) * saved_ns * (1 - 1 / runs),
                (
                    (
                        f"{counted(runs, 'row')} inserted in {duration(group.steady_ns / runs)}"
                        f" each{line_time_in_words(program, group)}"
                    ),
                ),
                (
                    batched_call_advice(library, program.called_library_functions(group))
                    or ONE_INSERT[library]
                )
                + _event_handlers_note(program, group),
                program.innermost_loop(group),
                doubt=_other_save_doubt(program, group) or parallel_threads_doubt(group),
            )


def _other_save_doubt(program: Program, group: StatementGroup) -> str:
    """Return a doubt if another package overrides the object mapper's save(); else ""."""
    library = program.library(group.statement)
    saves = (one for one in program.library_frames(group) if one.function.endswith(".save"))
    packages = (package_of(frame) for frame in saves)
    other = next((one for one in packages if one not in ("", library)), "")
    if not other:
        return ""
    return f"The save() of {other} also runs for each object. A bulk insert does not call it."


def _event_handlers_note(program: Program, group: StatementGroup) -> str:
    """Return a sentence about the program's functions that a library calls during the statement's
    line, such as handlers of signals and events. A bulk insert may not call them.
    """
    frame, found = group.site.frame, dict[str, None]()
    for other in program.all_groups:
        path = program.path_inside_request(other)
        place = path.index(frame) if frame in path else 0
        if place:
            found.setdefault(f"{path[place - 1].function.rpartition('.')[2]}()")
    names = list(found)[:SHOWN]
    called = " and ".join(names)
    return f" The INSERT's line also calls {called}: do this once, after the bulk insert." * bool(
        names
    )


STILL_EACH = (
    "If the statement must still run once per row, the fix saves only the overhead per call."
)
COMPUTED = {
    "django": (
        "It is unknown whether SQL can compute the new values. On SQLite, `bulk_update()` saves"
        " little."
    ),
}
"""By library: a doubt, because the fix saves little if SQL cannot compute the new values."""


def find_single_row_changes(program: Program) -> Iterator[Finding | None]:
    """Find loops that change rows one by one where a single statement would do."""
    for group in _groups_in_row_loops(program, CHANGES):
        if has_own_commits(program, group):
            continue  # the loop is around transactions, and their commits take the time
        if is_slow_on_server(program, group):
            continue  # one statement for all rows would take as long
        runs, parent = group.totals.statement_executions, parent_query(program, group)
        library = program.library(group.statement)
        is_delete = group.verb == "DELETE"
        plain_delete = is_delete and library not in ONE_CHANGE
        of_each = duration(group.steady_ns / runs)
        # Some drivers do not report how many rows a statement changed.
        rows = f", which change {counted(group.rows, 'row')}" if group.rows else ""
        changed = f"{counted(runs, 'execution')} of {of_each} each{rows}"
        evidence = [f"{changed}{line_time_in_words(program, group)}"]
        if parent:
            evidence.append(
                f"once per row of {shorten(parent.statement, 80)} ({counted(parent.rows, 'row')})"
            )
        yield program.make_finding(
            "single_changes",
            group,
            share_without_waits(group) * group.cost_ns * (1 - 1 / runs),
            tuple(evidence),
            batched_call_advice(library, program.called_library_functions(group))
            or (ONE_DELETE.get(library, "") * is_delete)
            or (DELETE_AT_ONCE if plain_delete else ONE_CHANGE.get(library, AT_ONCE)).format(
                verb=group.verb
            ),
            program.innermost_loop(group),
            doubt=parallel_threads_doubt(group)
            or (STILL_EACH if is_delete else COMPUTED.get(library, STILL_EACH)),
            most=Severity.MEDIUM if library in COMPUTED and not is_delete else Severity.HIGH,
        )


def find_awaited_rows(program: Program) -> Iterator[Finding | None]:
    """Find loops in which an async driver hands each row to its thread. One call could fetch or
    insert many rows.
    """
    for group in program.groups:
        if group.handed_ns <= group.steady_ns:
            continue
        fetches = group.calls_by_operation.get("fetchone", 0) + group.calls_by_operation.get(
            "next", 0
        )
        if group.reads and fetches >= FEW * max(1, group.totals.executions):
            yield _awaited_rows_finding(program, group, fetches, "fetched", FETCH_MANY)
    for group in _groups_in_row_loops(program, ("INSERT", "REPLACE")):
        is_library_s = program.library(group.statement) in ONE_INSERT  # reported above
        if group.handed_ns > group.steady_ns and not (
            is_library_s or has_own_commits(program, group)
        ):
            yield _awaited_rows_finding(
                program, group, group.totals.executions, "inserted", INSERT_MANY
            )


def _awaited_rows_finding(
    program: Program, group: StatementGroup, calls: int, done: str, fix: str
) -> Finding | None:
    each_ns = group.handed_ns / calls
    return program.make_finding(
        "awaited_rows",
        group,
        group.handed_ns * (1 - 1 / calls),
        (
            (
                f"{counted(calls, 'row')} {done} by separate calls; passing each call to a thread"
                f" and back takes {duration(each_ns)}, and the driver takes"
                f" {duration(group.steady_ns / calls)}"
            ),
        ),
        fix,
        program.innermost_loop(group),
    )


def _groups_in_row_loops(program: Program, verbs: tuple[str, ...]) -> Iterator[StatementGroup]:
    repeated = repeats_by_statement_site(program)
    for group in program.groups:
        runs = group.totals.statement_executions
        if group.verb not in verbs or runs < FEW or group.rows > MAX_ROWS * runs:
            continue  # few executions, or many rows each
        in_loop = (group.statement, group.site.frame) in repeated or (
            program.innermost_loop(group) and repeats_outside_or_in_each_span(program, group)
        )
        if in_loop and not program.belongs_to_other_call(
            group
        ):  # otherwise the call's main statement is reported
            yield group
