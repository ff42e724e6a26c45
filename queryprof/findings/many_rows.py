"""Find queries whose time goes into the rows that they return."""

from __future__ import annotations

from queryprof.analysis.units import average
from queryprof.findings.finding import Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import FEW_READS, HeavyStatementCause
from queryprof.findings.program import Program
from queryprof.sql.clauses import tables_by_alias

MANY_ROWS = 1_000

STEPS_PER_ROW, SCANNED_PER_ROW = 50, 3
"""If SQLite takes at most this many VM steps, and scans at most this many rows, per returned row,
then it hardly reads other rows. A join of two tables by their keys took 17 steps per row, with
ORDER BY.
"""

FEWER = (
    "An index would save little: most of this work is for rows that the query returns. Return fewer"
    " rows (WHERE, LIMIT), or run the query less often and keep the result."
)
DELETE_OLD = " Delete or archive old rows that the program does not need."
ALL_NEEDED = "The program may need all rows."


def cause_of_many_rows(program: Program, group: StatementGroup) -> HeavyStatementCause | None:
    """Return the cause of a query that does little more than return its rows; None for others."""
    totals = group.totals
    rows, steps = totals.rows_each, totals.vm_steps
    if not group.reads or rows is None or steps is None or rows < MANY_ROWS:
        return None
    if steps > STEPS_PER_ROW * rows or (totals.full_scan_steps or 0.0) > SCANNED_PER_ROW * rows:
        return None
    grown = _tables_that_only_grow(program, group) if totals.executions >= FEW_READS else ""
    evidence = f"{average(steps / rows)} VM steps per returned row"
    if grown:
        evidence += f"; the program adds rows to {grown} and deletes none"
    return HeavyStatementCause(
        FEWER + DELETE_OLD * bool(grown),
        group.work_ns,
        (evidence,),
        ALL_NEEDED,
        most=Severity.MEDIUM if grown else Severity.LOW,
    )


def _tables_that_only_grow(program: Program, group: StatementGroup) -> str:
    """Return the tables of the query to which the program adds rows, and from which it deletes
    none; "" if there are none.
    """
    tables = {name.lower() for name in tables_by_alias(group.statement).values()}
    changes = [(one.verb, one.clauses.changed) for one in program.all_groups if one.writes]
    deleted = {table for verb, table in changes if verb == "DELETE"}
    inserted = [table for verb, table in changes if verb == "INSERT" and table in tables]
    return " and ".join(dict.fromkeys(one for one in inserted if one not in deleted))
