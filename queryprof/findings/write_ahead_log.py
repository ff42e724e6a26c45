"""Findings about write-ahead logs that SQLite cannot restart because connections read."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.lock_holders import own_code_share
from queryprof.analysis.units import counted, duration, format_bytes
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.locks import OWN_CODE, Consequence, locking_statement_ns
from queryprof.findings.program import Program
from queryprof.model import LockHold
from queryprof.sql.clauses import verb_of

LOG_BYTES = 1000 * 4096
"""SQLite checkpoints and restarts a write-ahead log of this size by itself. Both factors are
SQLite's defaults (https://www.sqlite.org/pragma.html#pragma_wal_autocheckpoint).
"""

LONG_NS = 1_000_000_000
"""A read transaction of this time is long enough to be the reason for a large log."""

NEVER_FREE = (
    "Read all rows at once (fetchall()), so that there are moments without a reader. Or run PRAGMA"
    " wal_checkpoint(TRUNCATE) at quiet times, on a connection with a timeout: the checkpoint waits"
    " for the readers and restarts the log. Writers wait for the checkpoint."
)
SIZE_COSTS = "A long log costs space, and time to read it. This time is not measured."


def find_pinned_logs(program: Program) -> Iterator[Consequence]:
    """Yield the transactions that keep SQLite from restarting a write-ahead log."""
    writes = [hold for hold in program.report.lock_holds if hold.kind == "write"]
    written = {hold.database for hold in writes}
    # Writing transactions also read. A SELECT may take the write lock to set up the log.
    writers = {
        (hold.statement, hold.path, hold.thread)
        for hold in writes
        if verb_of(hold.statement) != "SELECT"
    }
    for hold in program.report.lock_holds:
        is_writer = (hold.statement, hold.path, hold.thread) in writers
        is_reader = hold.kind != "write" and not is_writer
        is_long = hold.max_ns >= LONG_NS  # shorter holds are recorded if they block writers
        if is_reader and is_long and hold.log_bytes > LOG_BYTES and hold.database in written:
            yield _pinned_log_finding(program, hold)
    pinned = {
        one.database
        for one in program.report.lock_holds
        if one.kind != "write" and one.max_ns >= LONG_NS
    }
    for database in sorted(written - pinned):
        kept = max(
            (one for one in writes if one.database == database), key=lambda one: one.log_bytes
        )
        if kept.log_bytes:
            yield Consequence(_starved_log_finding(program, kept), False)


def _starved_log_finding(program: Program, hold: LockHold) -> Finding:
    """Return the finding about a log that SQLite cannot restart, because at any time at least one
    short read transaction is open. The finding is about the query of this database that takes most
    time, if the queries are known by their plans.

    Args:
        hold: the write locks on the database.
    """
    writing = {one.thread for one in program.report.lock_holds if one.kind == "write"}
    of_database = {one.statement for one in program.profile.plans if one.database == hold.database}
    readers = [
        one
        for one in program.all_groups
        if one.reads and one.site.frame and one.statement in of_database
    ]
    readers.sort(
        key=lambda one: (all(each.thread in writing for each in one.members), -one.self_ns)
    )
    return Finding(
        "pinned_wal",
        Severity.MEDIUM,
        0.0,
        0,
        readers[0].statement if readers else hold.statement,
        readers[0].site if readers else program.report.sites.site(hold.path),
        None,
        (
            (
                "SQLite could not restart the write-ahead log for more than a second, and the log"
                f" grew to {format_bytes(hold.log_bytes)}: read transactions of several connections"
                " overlap, so at least one was always open"
            ),
        ),
        NEVER_FREE,
        doubt=SIZE_COSTS,
        whole=program.whole,
    )


def _pinned_log_finding(program: Program, hold: LockHold) -> Consequence:
    """Return the finding about a read transaction of at least a second. Shorter ones are recorded
    only if they kept writers from committing.
    """
    by_cursor = hold.end_statement == hold.statement
    finding = Finding(
        "pinned_wal",
        Severity.MEDIUM,
        0.0,
        0,
        hold.statement,
        program.report.sites.site(hold.path),
        None,
        (
            (
                f"{counted(hold.count, 'read transaction')} stayed open for up to"
                f" {duration(hold.max_ns)}, and the write-ahead log grew to"
                f" {format_bytes(hold.log_bytes)}."
                " SQLite cannot reset the log while a transaction reads an older state, so each"
                " write enlarges it"
            ),
        ),
        (
            "Fetch all rows at once (fetchall()) or close the cursor: an unfinished SELECT keeps"
            " its transaction open."
            if by_cursor
            else (
                "COMMIT (or ROLLBACK) right after the last read: a transaction keeps its snapshot"
                " until it ends. An unfinished SELECT also keeps the snapshot: call fetchall(), or"
                " close the cursor."
            )
        ),
        doubt=SIZE_COSTS,
        whole=program.whole,
    )
    own = own_code_share(hold)
    worked = locking_statement_ns(program, hold) if own is None else (1 - own) * hold.total_ns
    return Consequence(finding, worked >= OWN_CODE * hold.total_ns)
