"""Findings about locks: which calls wait, and which transactions hold the locks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from queryprof.analysis.call_sites import Sites
from queryprof.analysis.lock_holders import LockHolders, host_by_process, own_code_share, sum_holds
from queryprof.analysis.overview import UNKNOWN_STATEMENT
from queryprof.analysis.units import count, counted, duration, percent, shorten
from queryprof.findings.finding import Finding, Severity, first_text_if_true
from queryprof.findings.immediate import BEGIN_IMMEDIATE, NO_LIBRARY
from queryprof.findings.lock_waits import WAITED_NS, CausedWaits, ranked_frame, waits_by_caller
from queryprof.findings.only_reads import ONLY_READS, only_reads
from queryprof.findings.program import Program
from queryprof.model import CallPath, LockEvent, LockHold
from queryprof.sql.clauses import is_checkpoint, verb_of

OWN_CODE = 0.5
OTHER_WORK_NS = 200_000
"""The program's own code counts as other work if it takes at least this time per transaction on
average. The code around the database calls takes less.
"""

LEAVE_FREE = (
    "Write less in each transaction, or let one thread of one process do all writing. If a"
    " loop retakes the lock immediately, sleep 100 ms after every few COMMITs: waiting"
    " connections retry after 1 to 100 ms."
)
"""SQLite's busy handler sleeps 1 to 100 ms between attempts (sqliteDefaultBusyCallback() in its
main.c). If a writer takes the lock again at once, others wait longer. Behind 40 short transactions
in a row, a wait grew from 330 ms to 1.5 s. With such a pause after every fourth transaction, it
took at most 23 ms.
"""

WITH_LOG = " With a write-ahead log (PRAGMA journal_mode = WAL), readers do not wait."
UNSEEN = (
    "The lock holder is unknown: a process that was not recorded or was killed, a lock taken before"
    " the recording, or many holds under 1 ms (--show locks prints their sums)."
)
CHECKPOINTS_WAIT = (
    "Only checkpoints waited. A checkpoint with a timeout waits for readers on purpose, and delays"
    " only its own thread."
)
FASTER = "Make this query faster: its long read blocks the commits of other connections."
COMMIT_FIRST = (
    "COMMIT (or ROLLBACK) before other work: after its first read, an open transaction blocks the"
    " commits of other connections."
)
FETCH_FIRST = (
    "Fetch all rows at once (fetchall()), or close the cursor, before other work: a reader blocks"
    " the commits of other connections."
)
NEVER_ENDED = (
    "No COMMIT or ROLLBACK was recorded. End the transaction, also after an exception or a"
    " cancellation (`with connection:` does both). If it wrote to a blob, close the blob."
)
VACUUM_RARELY = (
    "Run VACUUM rarely, when PRAGMA freelist_count shows many free pages: it rewrites the whole"
    " file."
)
OTHER_WORK_FIRST = (
    "Do the other work (computing, requests to other services) before the transaction takes the"
    " lock (at BEGIN IMMEDIATE, or the first write), or after COMMIT."
)
CLOSED = "(close)"
NO_END = (UNKNOWN_STATEMENT, CLOSED)
"""The end statements of write transactions without COMMIT or ROLLBACK."""

ENDS = ("COMMIT", "ROLLBACK", "END", "(COMMIT", "(ROLLBACK")
"""The first words of statements and calls that end a transaction."""

REFUSED = (
    "database is locked (SQLITE_BUSY of a read transaction)",
    "database is locked (SQLITE_BUSY_SNAPSHOT)",
    "database is locked (SQLITE_BUSY_SNAPSHOT of a read transaction)",
)
"""The last words of errors from transactions that could not start to write."""

TIMED_OUT = "database is locked (SQLITE_BUSY)"
"""The last words of errors from calls whose timeout ended before the lock was free."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """A finding about a statement that keeps others waiting or enlarges the write-ahead log.

    Attributes:
        is_of_work: True if the statement's own work is the cause, and not the program's other work.
        held_ns: how long the awaited lock was held.
        otherwise: advice to keep an event loop from waiting, added to another fix.
    """

    finding: Finding
    is_of_work: bool
    held_ns: int = 0
    otherwise: str = ""


def lock_findings(program: Program) -> Iterator[Consequence]:
    """Yield lock_wait and long_transaction findings: one per holder, one for unknown holders."""
    caused, known_ns = _caused_waits(program)
    for found in caused:
        if found.ns >= WAITED_NS:
            yield from _lock_holder_findings(program, found)
    total_ns = sum(work.lock_ns for work in program.profile.file_work)
    unknown_ns = total_ns - known_ns
    if program.groups and unknown_ns >= WAITED_NS and unknown_ns > 0.5 * total_ns:
        yield from _unknown_holder_findings(program, unknown_ns)


def _caused_waits(program: Program) -> tuple[list[CausedWaits], int]:
    """Return the waits that each holder caused, and the total time of waits with known holders."""
    profile, sites = program.profile, program.report.sites
    holders = LockHolders(profile.lock_events, host_by_process(profile))
    caused: dict[tuple[str, object, object], dict[CallPath, CausedWaits]] = {}
    of_holder: dict[int, CausedWaits] = {}  # many waits can have the same holder
    known_ns = 0
    for wait in (event for event in profile.lock_events if event.kind == "wait"):
        of_wait: dict[int, tuple[CausedWaits, int]] = {}
        for holder, ns in holders.blockers_of(wait):
            cause = of_holder.get(id(holder))
            if cause is None:
                key = (
                    holder.statement,
                    ranked_frame(holder.path, sites),
                    ranked_frame(holder.end_path, sites),
                )
                callers = sites.site(holder.path).callers[:1]
                of_callers = caused.setdefault(key, {})
                cause = of_callers.setdefault(callers, CausedWaits(holder, callers={callers}))
                of_holder[id(holder)] = cause
            of_wait[id(cause)] = cause, of_wait.get(id(cause), (cause, 0))[1] + ns
        for cause, held_ns in of_wait.values():
            waited_ns = min(held_ns, wait.duration_ns)
            cause.add_wait(wait, ranked_frame(wait.path, sites), waited_ns)
            known_ns += waited_ns
    return list(chain.from_iterable(map(waits_by_caller, caused.values()))), known_ns


def _lock_holder_findings(program: Program, found: CausedWaits) -> Iterator[Consequence]:
    """Yield the finding about one holder of a lock."""
    sites = program.report.sites
    hold = _sum_holds_at_place(found, program.report.lock_holds, sites)
    own = own_code_share(hold)
    is_work = own is not None and own * hold.total_ns >= OTHER_WORK_NS * hold.count
    long = is_work and own is not None and own >= OWN_CODE
    reads = found.holder.kind == "read"
    changes_nothing = hold.changed_rows == 0 and only_reads(program, found.holder)
    works = reads and locking_statement_ns(program, found.holder) >= OWN_CODE * hold.total_ns
    # Parallel waits delay the run only once, but they delay each span.
    gain_ns = found.ns if program.spans else min(found.ns, hold.total_ns)
    with_log = WITH_LOG if found.has_readers and not hold.log_bytes else ""
    ends = found.holder.end_statement
    is_endless = not reads and ends in NO_END
    is_long = long or is_endless or (reads and not works)
    finding = program.make_finding_at_site(
        "long_transaction" if is_long else "lock_wait",
        found.holder.statement,
        sites.site(found.holder.path),
        gain_ns,
        (
            (
                f"blocked {counted(found.count, 'other call')} for {duration(found.ns)}"
                f" (longest {duration(found.longest_ns)}):"
                f" {', '.join(sorted(found.waiters)[:3])}"
            ),
            *_failed_calls_note(program, found),
            *_self_wait_note(found),
            _hold_in_words(hold, sites),
            *_lost_changes_note(hold, is_endless),
            *_autoflush_note(program, found.holder),
        ),
        first_text_if_true(
            (verb_of(found.holder.statement) == "VACUUM", VACUUM_RARELY),
            (works, FASTER + with_log),
            (reads and ends.upper().startswith(ENDS), COMMIT_FIRST + with_log),
            (reads, FETCH_FIRST + with_log),
            (is_endless, NEVER_ENDED),
            (long and changes_nothing, ONLY_READS),
            (long, OTHER_WORK_FIRST + _awaited_holder_note(program, found)),
            (True, LEAVE_FREE + with_log),
        ),
        doubt=CHECKPOINTS_WAIT if found.are_checkpoints else "",
        most=Severity.LOW if found.are_checkpoints else Severity.HIGH,
    )
    if finding:
        yield Consequence(finding, not is_long, hold.total_ns)


def _unknown_holder_findings(program: Program, unknown_ns: float) -> Iterator[Consequence]:
    """Yield the finding about waits whose holder was not seen."""
    most = max(program.groups, key=lambda group: group.files.lock_ns)
    finding = program.make_finding(
        "lock_wait",
        most,
        unknown_ns,
        (
            (
                f"{counted(most.files.lock_waits, 'call')} waited"
                f" {duration(most.files.lock_ns)} (longest"
                f" {duration(most.files.max_lock_ns)})"
            ),
        ),
        "Find out who writes to this database, and shorten those transactions.",
        doubt=CHECKPOINTS_WAIT if is_checkpoint(most.statement) else UNSEEN,
        most=Severity.LOW if is_checkpoint(most.statement) else Severity.HIGH,
    )
    if finding:
        yield Consequence(finding, is_of_work=False)


def _self_wait_note(waits: CausedWaits) -> Iterator[str]:
    """Yield a sentence if a thread waited for a lock that only the same thread could release."""
    if waits.own == waits.count:
        yield "the waiting thread held the lock itself, on another connection"


def _lost_changes_note(hold: LockHold, is_endless: bool) -> Iterator[str]:
    """Yield a sentence if closing the connection rolled back uncommitted changes."""
    if is_endless and hold.end_statement == CLOSED and hold.changed_rows:
        yield "the connection was closed without a COMMIT, so these changes are lost"


def _autoflush_note(program: Program, holder: LockEvent) -> Iterator[str]:
    """Yield a sentence if an ORM took the lock to write changed objects before a query."""
    frame = ranked_frame(holder.path, program.report.sites)
    if program.is_orm_flush(holder.statement, frame):
        yield (
            "the session wrote its changed objects before a query (autoflush); in `with"
            " session.no_autoflush:`, the lock is taken later, at the commit"
        )


def _awaited_holder_note(program: Program, waits: CausedWaits) -> str:
    """Return a sentence if the holder's calls are awaited: other work of the event loop then
    interrupts the holder.
    """
    handed = {one.site.frame for one in program.report.handoffs}
    if ranked_frame(waits.holder.path, program.report.sites) not in handed:
        return ""
    return " The transaction awaits its calls, so this time includes other tasks of the event loop."


def _failed_calls_note(program: Program, waits: CausedWaits) -> Iterator[str]:
    """Yield a sentence about calls that timed out. These are calls with the same statement and line
    as a call that waited for this holder.
    """
    failed = sum(
        error.count
        for error in program.profile.errors
        if (error.statement, error.path[:1]) in waits.places and error.exception.endswith(TIMED_OUT)
    )
    if failed:
        yield f"{count(failed)} of the blocked calls timed out: database is locked"


def locking_statement_ns(program: Program, holder: LockEvent | LockHold) -> int:
    """Return the database time of the statement that took a lock, at its call site."""
    return sum(
        aggregate.self_ns
        for aggregate in program.profile.aggregates
        if aggregate.statement == holder.statement and aggregate.path[:1] == holder.path[:1]
    )


def find_failed_lock_upgrades(program: Program) -> Iterator[Finding | None]:
    """Find transactions that fail when they start to write.

    If a transaction has read and another transaction writes, SQLite refuses the first transaction's
    write without calling the busy handler, because the two would wait for each other forever
    (https://www.sqlite.org/lang_transaction.html#deferred_immediate_and_exclusive_transactions).
    """
    refused: dict[tuple[str, object], tuple[int, CallPath]] = {}
    for error in program.profile.errors:
        if error.exception.endswith(REFUSED):
            key = error.statement, error.path[:1]
            count, path = refused.get(key, (0, error.path))
            refused[key] = count + error.count, path
    for (statement, _), (count, path) in refused.items():
        library = program.library(statement)
        yield Finding(
            "lock_upgrade",
            Severity.HIGH,
            0.0,
            0,
            statement,
            program.report.sites.site(path),
            None,
            (
                (
                    f"SQLite refused the write {counted(count, 'time')}, without waiting for the"
                    " timeout: another transaction had written since this transaction's first"
                    " read"
                ),
            ),
            BEGIN_IMMEDIATE.get(library, NO_LIBRARY),
            whole=program.whole,
        )


def _sum_holds_at_place(waits: CausedWaits, holds: Iterable[LockHold], sites: Sites) -> LockHold:
    """Return the sums of all lock holds with the same statement and lines as the blocking hold. The
    sums include all threads and spans, but only callers whose holds blocked other calls.
    """
    event = waits.holder

    def place(one: LockEvent | LockHold) -> tuple[object, ...]:
        at = ranked_frame(one.path, sites), ranked_frame(one.end_path, sites)
        return one.statement, one.kind, one.database, at

    same = [
        hold
        for hold in holds
        if place(hold) == place(event) and sites.site(hold.path).callers[:1] in waits.callers
    ]
    if same:
        return sum_holds(same, same[0])
    return LockHold(
        event.kind,
        event.database,
        event.statement,
        event.path,
        event.span,
        event.thread,
        event.end_statement,
        event.end_path,
        1,
        event.duration_ns,
        event.duration_ns,
        0,
        0,
        None,
        0,
    )


def _hold_in_words(hold: LockHold, sites: Sites) -> str:
    own = own_code_share(hold)
    meanwhile = "" if own is None else f"; the program's own code took {percent(own)} of that time"
    if hold.changed_rows:
        meanwhile += f"; the transactions changed {counted(hold.changed_rows, 'row')}"
    ended = ranked_frame(hold.end_path, sites)
    until = f", until {shorten(hold.end_statement, 40)} in line {ended.line}" if ended else ""
    return (
        f"transactions took the {hold.kind} lock on this line {counted(hold.count, 'time')} and"
        f" held it for {duration(hold.total_ns)} in total (longest {duration(hold.max_ns)})"
        f"{until}{meanwhile}"
    )
