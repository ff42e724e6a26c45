"""Transactions that take the write lock, although they only read."""

from __future__ import annotations

from queryprof.findings.program import Program
from queryprof.model.files import LockEvent, LockHold
from queryprof.sql.clauses import verb_of

ONLY_READS = (
    "This transaction changes no row: begin it with BEGIN, not BEGIN IMMEDIATE, so that it does not"
    " take the write lock."
)

OF_TRANSACTIONS = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK"})


def only_reads(program: Program, holder: LockEvent | LockHold) -> bool:
    """Return whether the function that began a transaction executes only queries. Other statements,
    such as ALTER TABLE, can write without changing a row.
    """
    if verb_of(holder.statement) != "BEGIN" or not holder.path:
        return False
    function = holder.path[0].file, holder.path[0].function
    near = [
        group
        for group in program.all_groups
        if group.totals.statement_executions
        and any((frame.file, frame.function) == function for frame in group.path)
    ]
    return all(one.reads or one.verb in OF_TRANSACTIONS for one in near)
