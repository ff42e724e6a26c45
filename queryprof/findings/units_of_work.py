"""Recognize queries that run once per request: each request runs several queries, and no two
requests share a transaction.
"""

from __future__ import annotations

from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program

ENDS = ("commit", "rollback")
"""The driver's operations that end a transaction."""

MIN_ENDS_PER_EXECUTION = 0.9

MIN_QUERIES = 3
"""A function with this many queries per call or transaction does more than look up one item."""

IN_A_REQUEST = (
    "Each execution has a transaction of its own, with other queries. In a request, this is usual."
)
"""The doubt about a repeated query of a function that may handle one request per call."""

IN_A_READER = (
    "Each call of the function executes other queries as well. In a request, this is usual."
)
"""The doubt about a repeated query of a function that only reads."""


def is_in_request(program: Program, group: StatementGroup) -> bool:
    """Return whether the group's function executes several queries per call and ends the
    transaction, and the loop around the query is outside the function.
    """
    runs = group.totals.statement_executions
    near = program.groups_of_function(group.function)
    ends = sum(one.calls_by_operation.get(name, 0) for one in near for name in ENDS)
    return ends >= MIN_ENDS_PER_EXECUTION * runs and _has_queries_per_call(program, group)


def is_of_a_reader(program: Program, group: StatementGroup) -> bool:
    """Return whether the group's function executes several queries per call and nothing else, and
    the function with the loop around the query executes no statement.
    """
    loop = program.innermost_loop(group)
    around = loop.frame if loop else None
    if not around or program.groups_of_function((around.file, around.function)):
        return False
    near = program.groups_of_function(group.function)
    only_reads = not any(one.writes or one.calls_by_operation.keys() & set(ENDS) for one in near)
    return only_reads and _has_queries_per_call(program, group)


def _has_queries_per_call(program: Program, group: StatementGroup) -> bool:
    """Return whether the group's function executes several queries per call, and the loop around
    the query is outside the function.
    """
    loop = program.innermost_loop(group)
    frame, around = group.site.frame, loop.frame if loop else None
    if not frame or not around or (frame.file, frame.function) == (around.file, around.function):
        return False
    runs = group.totals.statement_executions
    near = program.groups_of_function(group.function)
    queries = [one for one in near if one.reads and 2 * one.totals.statement_executions >= runs]
    return len(queries) >= MIN_QUERIES
