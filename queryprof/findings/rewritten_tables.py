"""Find tables that a program rewrites completely for each change."""

from __future__ import annotations

from queryprof.analysis.units import average
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import HeavyStatementCause
from queryprof.findings.program import Program
from queryprof.sql.clauses import changed_schema
from queryprof.sql.tokens import tokens_of

MIN_REWRITES = 3
MIN_ROWS = 20
"""The fewest rows that each rewrite inserts."""

DELETED = 0.6
"""The least share of the inserted rows that the program deletes. If a table is empty at first, the
share is two thirds for MIN_REWRITES writes, and half for two writes.
"""

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
    words = {token.keyword for token in tokens_of(group.statement)}
    if group.verb not in ("INSERT", "REPLACE") or not table or "SELECT" in words:
        return None
    if program.database_file_count([group.statement]) > 1:
        return None  # perhaps each file is written once
    deletes = [
        one for one in program.groups_of_function(group.function) if _empties_before(one, group)
    ]
    rewrites = sum(one.totals.statement_executions for one in deletes)
    deleted = sum(one.rows for one in deletes)
    if rewrites < MIN_REWRITES or not MIN_ROWS * rewrites <= group.rows <= deleted / DELETED:
        return None
    said = (
        f"{rewrites:,} times, the program deletes all rows of {table} and inserts about"
        f" {average(group.rows / rewrites)} rows"
    )
    return HeavyStatementCause(FIX, group.work_ns, (said,), DOUBT)


def _empties_before(delete: StatementGroup, insert: StatementGroup) -> bool:
    """Return whether a statement deletes all rows of the table of an INSERT, in an earlier line."""
    clauses, first, second = delete.clauses, delete.site.frame, insert.site.frame
    is_whole = delete.verb == "DELETE" and not clauses.chooses
    is_same = clauses.changed == insert.clauses.changed and (
        changed_schema(delete.statement) == changed_schema(insert.statement)
    )
    is_earlier = first is not None and second is not None and first.line <= second.line
    return is_whole and is_same and is_earlier
