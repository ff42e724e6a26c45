"""What a loop around a query looks like: recursion, tasks, queries that follow rows."""

from __future__ import annotations

from queryprof.analysis.call_sites import CallSite
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program


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
    """Return whether each execution in the loop needs the row of the execution before."""
    within = loop.frame if loop else None
    return within is not None and any(
        program.lines.needs_previous_row(frame)
        for frame in group.path
        if (frame.file, frame.function) == (within.file, within.function)
    )


def is_recursion(loop: CallSite | None, group: StatementGroup) -> bool:
    """Return whether the loop's line is a recursive call."""
    if loop is None or loop.frame is None:
        return False
    functions = [(frame.file, frame.function) for frame in group.path]
    again = functions.count((loop.frame.file, loop.frame.function)) > 1
    # Several generator expressions, or lambdas, may have the same name.
    has_name = not loop.frame.function.endswith(">")
    return again and has_name and loop.frame in group.path


def calls_query_and_parent(loop: CallSite, group: StatementGroup, parent: StatementGroup) -> bool:
    """Return whether one line in a loop calls both the query and its parent."""
    within = loop.frame
    return within is not None and any(
        (frame.file, frame.function) == (within.file, within.function) and frame.line != within.line
        for frame in group.path
        if frame in parent.path
    )
