"""Classify the loop around a query: recursion, tasks, a queue, one row leading to the next."""

from __future__ import annotations

from queryprof.analysis.call_sites import CallSite
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.sql.clauses import first_table
from queryprof.sql.tokens import tokens_of


def executes_in_created_tasks(
    program: Program, loop: CallSite | None, group: StatementGroup
) -> bool:
    """Return whether a loop's function executes a statement in tasks that it creates in the
    loop.
    """
    within = loop.frame if loop else None
    return within is not None and any(
        program.makes_tasks(frame)
        for frame in (within, *group.path)
        if (frame.file, frame.function) == (within.file, within.function)
    )


def needs_previous_row(program: Program, loop: CallSite | None, group: StatementGroup) -> bool:
    """Return whether each execution in the loop needs the row of the previous execution."""
    within = loop.frame if loop else None
    return within is not None and any(
        program.lines.needs_previous_row(frame)
        for frame in group.path
        if (frame.file, frame.function) == (within.file, within.function)
    )


def is_recursion(loop: CallSite | None, group: StatementGroup) -> bool:
    """Return whether the loop's line is a recursive call, or the query's function calls itself."""
    # Skip generator expressions and lambdas: several may have the same name.
    path = [frame for frame in group.path if not frame.function.endswith(">")]
    functions = [(frame.file, frame.function) for frame in path]
    if loop is None or loop.frame is None:
        return False
    is_own = functions.count(functions[0]) > 1 if functions else False
    again = functions.count((loop.frame.file, loop.frame.function)) > 1
    return is_own or (again and loop.frame in path)


def calls_query_and_parent(loop: CallSite, group: StatementGroup, parent: StatementGroup) -> bool:
    """Return whether one line of the loop's body runs both the query and its parent query."""
    within = loop.frame
    return within is not None and any(
        (frame.file, frame.function) == (within.file, within.function) and frame.line != within.line
        for frame in group.path
        if frame in parent.path
    )


def loads_by_position(program: Program, group: StatementGroup) -> bool:
    """Return whether the program reads one object of a query by its position, as in objects[7], and
    the library executes the query for this object.
    """
    is_django = program.library(group.statement) == "django"
    skips = any(token.keyword == "OFFSET" for token in tokens_of(group.statement))
    is_one = (group.totals.rows_each or 0.0) <= 1
    calls = program.called_library_functions(group)
    return is_django and skips and is_one and "__getitem__" in calls


def is_queue_read(program: Program, group: StatementGroup) -> bool:
    """Return whether a query takes the next row, as from a queue: the same function writes to the
    query's table at least half as often.
    """
    table = first_table(group.statement)
    return group.clauses.limits and any(
        one.writes
        and one.clauses.changed == table
        and 2 * one.totals.executions >= group.totals.executions
        for one in program.groups_of_function(group.function)
    )
