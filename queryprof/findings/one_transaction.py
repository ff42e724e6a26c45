"""How to put many writes into one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.findings.groups import StatementGroup
from queryprof.findings.heavy_causes import SERVERS
from queryprof.findings.libraries import ONE_TRANSACTION, ROWS_AT_ONCE, is_unknown_library
from queryprof.findings.program import Program

MEANWHILE = "The transaction blocks other writers until it ends, so do slow work first."

MEANWHILE_ON_A_SERVER = (
    "The transaction locks the rows that it changes until it ends, so do slow work first."
)

BY_ITSELF = (
    " If each item must be saved separately, commit once per item and use a write-ahead log with"
    " PRAGMA synchronous = NORMAL. COMMIT then syncs nothing, so a power failure may lose the last"
    " transactions."
)
"""A further fix, for a loop that spends at least a quarter of its time on syncs. With a write-ahead
log, a commit also creates no journal.
"""

AROUND_IT = (
    "Put one transaction around executemany(): BEGIN before the call, COMMIT after the call."
    " Without a transaction, executemany() commits each row."
)
AROUND_THE_LOOP = (
    "Put one transaction around the loop: BEGIN before it, COMMIT after it, and none inside it."
    " With sqlite3, `with connection:` does both (its first write begins the transaction), unless"
    " isolation_level is None."
)
AROUND_ON_SERVER = (
    "Put one transaction around {what}: `with connection.transaction():` (asyncpg: `async with`),"
    " or BEGIN before it and COMMIT after it."
)
OF_JOBS = (
    "Let one thread write: each job returns its rows, and one transaction writes the rows of all"
    " jobs."
)
AFTER_THE_LOOP = "Commit once, after the loop."
AWAITED = "Commit once, after the loop: `await connection.commit()`."
OF_A_WORKER = (
    "Commit once for several items: take what is in the queue, write all rows, then commit."
)

ITS_OWN_COMMIT = (
    "{library} commits here. Check its documentation for a transaction around several calls,"
    " for a call that takes all rows, or for an argument that leaves the commit to you."
)
"""The fix for an unknown library that writes and commits in one call of the program."""

LOCKED = (
    "Several processes or threads run this statement. A longer transaction makes them wait longer"
    " for each other's row locks."
)


def own_transactions_fix(program: Program, group: StatementGroup) -> str:
    """Return the fix for a statement whose executions each have their own transaction."""
    library = program.library(group.statement)
    if is_unknown_library(library):
        return _one_transaction_fix(program, group, ITS_OWN_COMMIT.format(library=library))
    is_many = bool(group.calls_by_operation.get("executemany"))
    plain = AROUND_IT if is_many else AROUND_THE_LOOP
    if _is_on_server(program, group):
        plain = AROUND_ON_SERVER
    return _one_transaction_fix(program, group, plain)


def loop_commits_fix(
    program: Program, group: StatementGroup, commits: Sequence[StatementGroup]
) -> str:
    """Return the fix for a statement whose commits are in the same loop."""
    library = program.library(group.statement)
    frame = group.site.frame
    is_inside = any(one.site.frame == frame for one in commits)
    is_inside = is_inside or (frame is not None and frame.kind == "library")
    if is_unknown_library(library) and is_inside:
        return ITS_OWN_COMMIT.format(library=library)
    plain = AFTER_THE_LOOP if _is_on_server(program, group) else AROUND_THE_LOOP
    return _one_transaction_fix(program, group, plain)


def locked_rows_doubt(program: Program, group: StatementGroup) -> str:
    """Return a doubt if a longer transaction would keep others from changing the same rows; ""
    otherwise.
    """
    is_shared = len(group.process_ids) > 1 or group.threads > 1 or group.overlaps
    is_change = group.verb in ("UPDATE", "DELETE")
    return LOCKED if is_change and is_shared and _is_on_server(program, group) else ""


def _one_transaction_fix(program: Program, group: StatementGroup, plain: str) -> str:
    library = program.library(group.statement)
    meanwhile = MEANWHILE_ON_A_SERVER if _is_on_server(program, group) else MEANWHILE
    if program.is_in_endless_loop(group):
        return f"{OF_A_WORKER} {meanwhile}"
    if program.timed_library(group.statement) == "aiosqlite":
        plain = AWAITED
    elif _is_in_jobs(program, group):
        plain = OF_JOBS
    is_single = group.verb == "INSERT" and group.rows <= 2 * group.totals.statement_executions
    rows = ROWS_AT_ONCE.get(library, "") if is_single else ""
    what = "the executemany()" if group.calls_by_operation.get("executemany") else "the loop"
    return f"{ONE_TRANSACTION.get(library, plain).format(what=what)}{rows} {meanwhile}"


def _is_in_jobs(program: Program, group: StatementGroup) -> bool:
    """Return whether the program gives jobs to threads that each insert rows without a loop."""
    givers = {one.site.frame for one in program.report.handoffs}
    is_given = group.threads > 1 and any(frame in givers for frame in group.path)
    return is_given and group.verb == "INSERT" and program.innermost_loop(group) is None


def _is_on_server(program: Program, group: StatementGroup) -> bool:
    return program.report.profile.systems.get(group.statement, "") in SERVERS
