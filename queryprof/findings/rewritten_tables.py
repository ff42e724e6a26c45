"""Find tables that a program rewrites completely for each change."""

from __future__ import annotations

from queryprof.analysis.units import average, counted
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import HeavyStatementCause
from queryprof.findings.program import Program

MIN_REWRITES = 3
MIN_ROWS = 20
"""The fewest rows that each rewrite inserts."""

FIX = (
    "Change only the rows that differ: UPDATE or INSERT ... ON CONFLICT for new values, and DELETE"
    " for removed rows. Or write the table once, after the last change."
)
DOUBT = "It is unknown how many rows differ each time."


def rewritten_table(program: Program, group: StatementGroup) -> HeavyStatementCause | None:
    """Return the cause of an INSERT whose function first deletes all rows of the table; None if it
    does not.
    """
    table = group.clauses.changed
    if group.verb not in ("INSERT", "REPLACE") or not table:
        return None
    rewrites = sum(
        one.totals.statement_executions
        for one in program.groups_of_function(group.function)
        if one.verb == "DELETE" and one.clauses.changed == table and not one.clauses.chooses
    )
    if rewrites < MIN_REWRITES or group.rows < MIN_ROWS * rewrites:
        return None
    words = (
        f"{counted(rewrites, 'DELETE')} of all rows of {table}, each followed by about"
        f" {average(group.rows / rewrites)} INSERTs"
    )
    return HeavyStatementCause(FIX, group.work_ns, (words,), DOUBT)
