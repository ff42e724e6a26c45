"""Each threshold of the findings about locks, from both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.test_thresholds import MS, READ, SITE, findings, has

from queryprof.findings.finding import Severity
from queryprof.model import (
    CallPath,
    ErrorCount,
    FileWork,
    Frame,
    Handoff,
    LockEvent,
    LockHold,
    Profile,
    StackSample,
    Thread,
)
from queryprof.model.loops import Distribution

pytestmark = pytest.mark.once


T1, T2 = Thread(1, "T1"), Thread(1, "T2")


def waited(wait_ms: float, database_share: float, held_ms: int = 200, holds: int = 2) -> Profile:
    """Return a write lock that another thread waits for, twice."""
    held = LockHold(
        "write",
        "a.db",
        "BEGIN",
        SITE,
        "",
        T1,
        "COMMIT",
        SITE,
        holds,
        2 * held_ms * MS,
        held_ms * MS,
        int(2 * held_ms * MS * database_share),
        2 * held_ms * MS,
        1,
        0,
    )
    events = tuple(
        event
        for start in (0, 1000 * MS)
        for event in (
            LockEvent("write", "a.db", "BEGIN", SITE, "", T1, "COMMIT", SITE, start, held_ms * MS),
            LockEvent("wait", "a.db", READ, SITE, "", T2, READ, SITE, start, int(wait_ms / 2 * MS)),
        )
    )
    return replace(profile_of(aggregate("BEGIN", SITE)), lock_holds=(held,), lock_events=events)


@pytest.mark.parametrize(("ms", "is_reported"), [(10, True), (9.99, False)])
def test_ten_milliseconds_of_waiting_are_reported(ms: float, is_reported: bool) -> None:
    assert has("lock_wait", waited(ms, 1.0)) == is_reported


@pytest.mark.parametrize(
    ("share", "holds", "category"),
    [
        (0.5, 2, "long_transaction"),
        (0.51, 2, "lock_wait"),
        (0.0, 2000, "long_transaction"),
        (0.0, 2001, "lock_wait"),
    ],
)
def test_a_transaction_is_long_when_half_of_it_is_other_work(
    share: float, holds: int, category: str
) -> None:
    """Half of each transaction is other work, and takes 0.2 ms."""
    (found,) = findings(waited(50, share, holds=holds))
    assert found.category == category


@pytest.mark.parametrize(
    ("statement", "changed", "is_read"),
    [
        ("BEGIN", 0, True),
        ("BEGIN", 1, False),
        ("BEGIN", None, False),
        ("UPDATE t SET a = ?", 0, False),
    ],
)
def test_a_transaction_that_changes_nothing_needs_no_write_lock(
    statement: str, changed: int | None, is_read: bool
) -> None:
    profile = waited(50, 0.0)
    (hold,) = profile.lock_holds
    held = replace(hold, statement=statement, changed_rows=changed)
    events = tuple(
        replace(event, statement=statement) if event.kind == "write" else event
        for event in profile.lock_events
    )
    connect = aggregate("(connect)", SITE)._replace(operation="connect")
    profile = replace(profile, aggregates=(*profile.aggregates, connect))
    (found,) = findings(replace(profile, lock_holds=(held,), lock_events=events))
    assert ("not BEGIN IMMEDIATE" in found.fix) == is_read
    alter = aggregate("ALTER TABLE t ADD COLUMN b", SITE)  # changes no row
    profile = replace(
        profile, aggregates=(*profile.aggregates, alter), lock_holds=(held,), lock_events=events
    )
    assert all("not BEGIN IMMEDIATE" not in one.fix for one in findings(profile))


def test_a_hold_without_any_time_is_no_error() -> None:
    """Such holds are found in foreign traces."""
    profile = waited(50, 0.5)
    (hold,) = profile.lock_holds
    assert findings(replace(profile, lock_holds=(replace(hold, total_ns=0),))) == ()


@pytest.mark.parametrize(
    ("end", "is_endless"), [("(unknown)", True), ("(close)", True), ("COMMIT", False)]
)
def test_a_transaction_that_nothing_has_ended(end: str, is_endless: bool) -> None:
    """For example, an exception ended its thread."""
    profile = waited(50, 1.0)
    events = tuple(
        replace(event, end_statement=end) if event.kind == "write" else event
        for event in profile.lock_events
    )
    (found,) = findings(replace(profile, lock_events=events))
    assert found.fix.startswith("No COMMIT or ROLLBACK") == is_endless
    assert found.category == ("long_transaction" if is_endless else "lock_wait")


def test_own_holds_keep_nobody_waiting() -> None:
    """A lock that the same thread takes after the wait does not count either."""
    profile = waited(50, 1.0)
    hold, wait, *_ = profile.lock_events
    own = replace(profile, lock_events=(replace(hold, thread=T2, start_unix_ns=50 * MS), wait))
    assert not has("lock_wait", own)


ERROR = "sqlite3.OperationalError: database is locked (SQLITE_BUSY"


@pytest.mark.parametrize(
    ("exception", "is_one"),
    [
        (f"{ERROR} of a read transaction)", True),
        (f"{ERROR}_SNAPSHOT)", True),
        (f"{ERROR})", False),
        ("sqlite3.OperationalError", False),
    ],
)
def test_a_refused_upgrade_is_no_wait_in_vain(exception: str, is_one: bool) -> None:
    profile = replace(
        profile_of(aggregate(READ, SITE)), errors=(ErrorCount(READ, SITE, "execute", exception, 2),)
    )
    assert has("lock_upgrade", profile) == is_one


WRITE = "UPDATE t SET a = ?"


def reads(thread: Thread, max_ms: int, log_bytes: int, statement: str = WRITE) -> Profile:
    """Return a read transaction of a thread during a write of the first thread."""
    held = LockHold(
        "read",
        "a.db",
        statement,
        SITE,
        "",
        thread,
        "COMMIT",
        SITE,
        1,
        max_ms * MS,
        max_ms * MS,
        0,
        0,
        None,
        log_bytes,
    )
    write = replace(held, kind="write", thread=T1, total_ns=MS, max_ns=MS, log_bytes=0)
    return replace(profile_of(aggregate(READ, SITE)), lock_holds=(held, write))


@pytest.mark.parametrize(
    ("thread", "max_ms", "log_bytes", "is_one"),
    [(T2, 1000, 4_096_001, True), (T2, 1000, 4_096_000, False), (T1, 1000, 4_096_001, False)],
)
def test_a_reader_pins_a_log_that_has_grown(
    thread: Thread, max_ms: int, log_bytes: int, is_one: bool
) -> None:
    """The log must exceed the size at which SQLite writes it back, and another thread must write. A
    writer's own read transaction does not count.
    """
    assert has("pinned_wal", reads(thread, max_ms, log_bytes)) == is_one


@pytest.mark.parametrize(("statement", "is_one"), [(READ, True), (WRITE, False)])
def test_a_reader_that_sets_up_the_log_is_no_writer(statement: str, is_one: bool) -> None:
    """For this a SELECT takes the write lock, at the first read of the file."""
    assert has("pinned_wal", reads(T1, 1000, 4_096_001, statement)) == is_one


@pytest.mark.parametrize(
    ("exception", "is_reported"),
    [("database is locked (SQLITE_BUSY)", True), ("database is locked (SQLITE_LOCKED)", False)],
)
def test_calls_whose_timeout_was_over_have_failed(exception: str, is_reported: bool) -> None:
    error = ErrorCount(READ, SITE, "execute", f"sqlite3.OperationalError: {exception}", 2)
    other = replace(error, statement="SELECT 1")
    (found,) = findings(replace(waited(50, 1.0), errors=(error, other)))
    message = "2 of the blocked calls timed out: database is locked"
    assert (message in found.evidence) == is_reported


@pytest.mark.parametrize(
    ("handed", "is_awaited"),
    [(SITE, True), ((), False), (SITE[1:], False)],  # the last one awaits the whole transaction
)
def test_a_long_transaction_s_awaited_calls_wait_for_the_loop(
    handed: CallPath, is_awaited: bool
) -> None:
    none = Distribution()
    one = Handoff("aiosqlite", handed, "", 1, 0, 0, none, none, none, none)
    (found,) = findings(replace(waited(50, 0.1), handoffs=(one,) * bool(handed)))
    assert found.category == "long_transaction"
    assert found.fix.endswith("includes other tasks of the event loop.") == is_awaited


@pytest.mark.parametrize(
    ("statement", "is_meant"), [("PRAGMA main.wal_checkpoint(?)", True), (READ, False)]
)
def test_a_checkpoint_waits_on_purpose(statement: str, is_meant: bool) -> None:
    """The wait has a known holder."""
    profile = waited(400, 0.0)
    events = tuple(
        replace(one, statement=statement) if one.kind == "wait" else one
        for one in profile.lock_events
    )
    (found,) = findings(replace(profile, lock_events=events))
    assert (found.severity is Severity.LOW) == is_meant
    assert found.doubt.startswith("Only checkpoints waited") == is_meant


@pytest.mark.parametrize(
    ("statement", "is_meant"), [("PRAGMA wal_checkpoint", True), (READ, False)]
)
def test_a_checkpoint_waits_for_an_unknown_holder(statement: str, is_meant: bool) -> None:
    waits = 2, 400 * MS, 300 * MS
    work = FileWork(statement, SITE, "", T1, "execute", 2, *waits, *([0] * 6))
    profile = replace(profile_of(aggregate(statement, SITE, ns=400 * MS)), file_work=(work,))
    found = next(one for one in findings(profile) if one.category == "lock_wait")
    assert (found.severity is Severity.LOW) == is_meant


@pytest.mark.parametrize("is_flush", [True, False])
def test_a_lock_that_an_autoflush_took(is_flush: bool) -> None:
    """SQLAlchemy writes a changed object before the query of this line."""
    flush = Frame(
        "Session._autoflush", "/venv/site-packages/sqlalchemy/orm/session.py", 1, "library"
    )
    stack = (flush, *SITE) if is_flush else SITE
    profile = replace(waited(400, 0.0), stack_samples=(StackSample("BEGIN", stack, 1, MS),))
    (found,) = findings(profile)
    assert any("(autoflush)" in one for one in found.evidence) == is_flush
