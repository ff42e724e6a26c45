"""Waits of one call and the holders of the lock: connections of one thread, threads with the same
name, holders that wait themselves, and several waits.
"""

from __future__ import annotations

import io
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from core.work_programs import database, until_refused

import queryprof
from queryprof.analysis.lock_holders import MAX_FOLLOWED, LockHolders, unique_events, unseen_ns
from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.model import LockEvent, Profile, Thread
from queryprof.report.terminal.locks import print_locks

pytestmark = pytest.mark.once


connections: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def _connections_are_closed() -> Iterator[None]:
    yield
    while connections:
        connections.pop().close()


def connection(path: Path, timeout: float = 60) -> sqlite3.Connection:
    """Return a connection that is closed at the end of the test."""
    made = sqlite3.connect(path, isolation_level=None, timeout=timeout, check_same_thread=False)
    connections.append(made)
    return made


def waits_of(profile: Profile) -> list[tuple[str, list[str]]]:
    """Return the waits in order: the statement, and those of the holders, longest first."""
    holders = LockHolders(profile.lock_events)
    waits = [event for event in unique_events(profile.lock_events) if event.kind == "wait"]
    return [
        (wait.statement, [hold.statement for hold, _ in holders.blockers_of(wait)])
        for wait in waits
    ]


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_a_thread_waits_for_itself(tmp_path: Path, mode: str) -> None:
    """Another connection of the same thread has an open transaction."""
    path = database(tmp_path / "t.db", mode)
    with queryprof.profile() as recording:
        holder, waiter = connection(path), connection(path, timeout=0.05)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            waiter.execute("UPDATE t SET a = 9")
        holder.execute("COMMIT")
    assert waits_of(recording.profile) == [("UPDATE t SET a = ?", ["BEGIN IMMEDIATE"])]
    holder.close()
    waiter.close()


def test_a_file_with_two_names_is_one(tmp_path: Path) -> None:
    """The second name is a hard link. A file may also reuse the number of a deleted file."""
    path, link = database(tmp_path / "t.db"), tmp_path / "link.db"
    link.hardlink_to(path)
    with queryprof.profile() as recording:
        holder, waiter = connection(path), connection(link, timeout=0.05)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            waiter.execute("UPDATE t SET a = 9")
        holder.execute("COMMIT")
        holder.close()
        waiter.close()
        path.unlink()
        alone = connection(link)
        alone.execute("DELETE FROM t")
        alone.close()
    assert waits_of(recording.profile) == [("UPDATE t SET a = ?", ["BEGIN IMMEDIATE"])]
    names = {one.statement: Path(one.database).name for one in recording.profile.lock_holds}
    assert (names["BEGIN IMMEDIATE"], names["DELETE FROM t"]) == ("t.db", "link.db")


def test_a_commit_waits_for_a_cursor_of_its_thread(tmp_path: Path) -> None:
    path = database(tmp_path / "t.db")
    with queryprof.profile() as recording:
        reader, writer = connection(path), connection(path, timeout=0.05)
        rows = reader.execute("SELECT a FROM t")
        rows.fetchone()
        writer.execute("BEGIN")
        writer.execute("UPDATE t SET a = 9")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.execute("COMMIT")
        rows.close()
    assert waits_of(recording.profile) == [("COMMIT", ["SELECT a FROM t"])]
    writer.close()
    reader.close()


def until_it_waits(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a thread that does some work, and return when a lock was refused to it."""
    thread = threading.Thread(target=work, name=name)
    thread.start()
    until_refused(f"self/task/{thread.native_id}")
    return thread


def test_threads_of_one_name_are_two(tmp_path: Path) -> None:
    path = database(tmp_path / "t.db")
    with queryprof.profile() as recording:
        holder, waiter = connection(path), connection(path)
        threading.current_thread().name, before = "worker", threading.current_thread().name
        holder.execute("BEGIN IMMEDIATE")
        thread = until_it_waits(lambda: waiter.execute("UPDATE t SET a = 9"), "worker")
        holder.execute("COMMIT")
        thread.join()
        threading.current_thread().name = before
    assert waits_of(recording.profile) == [("UPDATE t SET a = ?", ["BEGIN IMMEDIATE"])]
    holder.close()
    waiter.close()


def test_a_checkpoint_waits_for_a_reader(tmp_path: Path) -> None:
    path = database(tmp_path / "t.db", "wal")
    with queryprof.profile() as recording:
        reader, writer = connection(path), connection(path)
        rows = reader.execute("SELECT a FROM t")
        rows.fetchone()
        writer.execute("UPDATE t SET a = 9")
        checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
        thread = until_it_waits(lambda: writer.execute(checkpoint).fetchall(), "writer")
        time.sleep(0.002)  # the shortest that is kept
        rows.close()
        thread.join()
    assert waits_of(recording.profile) == [("PRAGMA wal_checkpoint(?)", ["SELECT a FROM t"])]
    writer.close()
    reader.close()


def test_a_reader_that_waits_holds_nothing(tmp_path: Path) -> None:
    """It waits for a COMMIT that waits for another reader: both wait for that reader."""
    path = database(tmp_path / "t.db")
    with queryprof.profile() as recording:
        reader, writer, late = connection(path), connection(path), connection(path)
        rows = reader.execute("SELECT a FROM t")
        rows.fetchone()
        writer.execute("BEGIN")
        writer.execute("UPDATE t SET a = 9")
        first = until_it_waits(lambda: writer.execute("COMMIT"), "writer")
        then = until_it_waits(lambda: late.execute("SELECT max(a) FROM t").fetchall(), "late")
        rows.close()
        first.join()
        then.join()
    found = dict(waits_of(recording.profile))
    assert found["COMMIT"] == ["SELECT a FROM t"]
    assert "SELECT a FROM t" in found["SELECT max(a) FROM t"]
    for each in (reader, writer, late):
        each.close()


def test_a_call_has_several_waits(tmp_path: Path) -> None:
    """It waits for two databases. The program's work in between is no wait."""
    main, side = database(tmp_path / "main.db"), database(tmp_path / "side.db")
    worked_ns = 0
    with queryprof.profile() as recording:
        holders = connection(main), connection(side)
        waiter = connection(main)
        waiter.execute("ATTACH ? AS side", (str(side),))
        holders[0].execute("BEGIN IMMEDIATE")
        holders[1].execute("BEGIN EXCLUSIVE")

        def work() -> int:
            nonlocal worked_ns
            start_ns = time.monotonic_ns()
            time.sleep(0.05)
            worked_ns = time.monotonic_ns() - start_ns
            return 1

        waiter.create_function("work", 0, work)
        script = "UPDATE main.t SET a = 9; SELECT work(); UPDATE side.t SET a = 9"
        thread = until_it_waits(lambda: waiter.executescript(script), "waiter")
        holders[0].execute("COMMIT")
        while not worked_ns:
            time.sleep(0.001)
        until_refused(f"self/task/{thread.native_id}")
        holders[1].execute("COMMIT")
        thread.join()
    found = waits_of(recording.profile)
    assert [holders for _, holders in found] == [
        ["BEGIN IMMEDIATE"],
        ["BEGIN EXCLUSIVE"],
    ]
    first, second = (one for one in recording.profile.lock_events if one.kind == "wait")
    assert second.start_unix_ns - first.start_unix_ns - first.duration_ns >= worked_ns
    for each in (*holders, waiter):
        each.close()


def event(kind: str, name: str, start_ms: int, end_ms: int, connection: int) -> LockEvent:
    return LockEvent(
        kind,
        "/t.db",
        name,
        (),
        "",
        Thread(1, f"t{connection}"),
        "(unknown)",
        (),
        start_ms * 10**6,
        (end_ms - start_ms) * 10**6,
        connection,
    )


def test_a_long_hold_is_one() -> None:
    """It is kept once a second while it continues, and at its end."""
    parts = [event("write", "BEGIN", 0, end, 1) for end in (1000, 2000, 2500)]
    again, other = event("write", "BEGIN", 2500, 2600, 1), event("write", "BEGIN", 500, 2600, 2)
    assert unique_events([*parts, again, other]) == [parts[-1], other, again]


def test_while_a_holder_waits_others_hold_up() -> None:
    """While the holder waits for another holder, a wait is attributed to that one."""
    first, second = event("write", "first", 0, 100, 1), event("read", "second", 10, 60, 2)
    inner = replace(event("wait", "commit", 20, 60, 1), writes=1)
    outer = event("wait", "late", 0, 100, 3)
    found = LockHolders([first, second, inner, outer]).blockers_of(outer)
    assert [(hold.statement, ns // 10**6) for hold, ns in found] == [("first", 60), ("second", 40)]


@pytest.mark.parametrize(("end_ms", "count"), [(179, 1), (181, 0)])
def test_the_longest_waits_name_who_a_holder_waited_for(end_ms: int, count: int) -> None:
    """The holder must have waited for most of the wait."""
    events = (
        event("read", "SELECT", 0, 100, 1),
        event("write", "UPDATE", 5, end_ms, 2),
        replace(event("wait", "COMMIT", 10, 100, 2), writes=1),
        event("wait", "SELECT", 20, end_ms, 3),
    )
    text = io.StringIO()
    print_locks(Report(Profile((), (), lock_events=events)), text, width=300)
    assert text.getvalue().partition("The longest waits")[2].count("which waited for") == count


def test_holders_that_all_wait_are_looked_behind_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace may contain 200 connections that read, each of which waits for all others."""
    events = [event("read", "read", 0, 100, number) for number in range(1, 201)]
    waits = [replace(event("wait", "wait", 1, 99, number), writes=1) for number in range(1, 201)]
    holders = LockHolders([*events, *waits])
    direct, looked = holders.refusing_holds, []
    monkeypatch.setattr(holders, "refusing_holds", lambda wait: looked.append(wait) or direct(wait))
    assert len(holders.blockers_of(waits[0])) == 200
    assert len(looked) <= 1 + MAX_FOLLOWED**2


@pytest.mark.slow
def test_a_log_that_was_begun_again_is_not_pinned(tmp_path: Path) -> None:
    """SQLite then keeps the file's size, so only the part in use counts."""
    path = database(tmp_path / "t.db", "wal")
    writer, reader = connection(path), connection(path)
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("CREATE TABLE large (a)")
    for _ in range(8):
        writer.execute("INSERT INTO large VALUES (zeroblob(1000000))")
    for is_begun_again in (True, False):
        if is_begun_again:
            assert writer.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0] == 0
            writer.execute("INSERT INTO t VALUES (1)")
        with queryprof.profile() as recording:
            reader.execute("BEGIN")
            reader.execute("SELECT a FROM t").fetchall()
            writer.execute("UPDATE t SET a = a + 1")
            for _ in range(0 if is_begun_again else 8):
                writer.execute("INSERT INTO large VALUES (zeroblob(1000000))")
            time.sleep(1.05)  # shorter ones are not kept
            reader.execute("COMMIT")
        assert (tmp_path / "t.db-wal").stat().st_size > 8_000_000
        found = find_all(Report(recording.profile), lambda *_: None, {})
        assert ("pinned_wal" in {one.category for one in found}) != is_begun_again
    writer.close()
    reader.close()


@pytest.mark.parametrize(("end_ms", "ns"), [(200, 200), (300, 300), (301, 200)])
def test_a_wait_goes_on_up_to_the_next_look(end_ms: int, ns: int) -> None:
    """SQLite's busy handler looks again after at most 100 ms. A longer wait is for another
    holder.
    """
    hold, wait = event("write", "BEGIN", 0, 200, 1), event("wait", "UPDATE", 0, end_ms, 2)
    ((found, for_ns),) = LockHolders([hold, wait]).blockers_of(wait)
    assert (found, for_ns // 10**6) == (hold, ns)


@pytest.mark.parametrize(
    ("holds", "ms"),
    [
        ([(0, 500)], 0),
        ([(10, 500)], 10),
        ([(0, 400)], 0),
        ([(0, 399)], 101),
        ([(0, 200), (300, 500)], 0),
        ([(0, 199), (300, 500)], 101),
        ([(-50, 100), (0, 450)], 0),
    ],
)
def test_what_no_hold_and_no_sleep_explains_is_not_seen(
    holds: list[tuple[int, int]], ms: int
) -> None:
    wait = event("wait", "UPDATE", 0, 500, 1)
    events = [event("write", "BEGIN", *times, 2) for times in holds]
    assert unseen_ns(wait, events) == ms * 10**6


def test_a_transaction_that_is_open_at_the_end_held_the_lock(tmp_path: Path) -> None:
    """Others wait because of a forgotten COMMIT."""
    path = database(tmp_path / "t.db", "delete")
    with queryprof.profile() as recording:
        holder = connection(path)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            connection(path, timeout=0.01).execute("UPDATE t SET a = 2")
    (hold,) = recording.profile.lock_holds
    assert (hold.kind, hold.statement, hold.count) == ("write", "BEGIN IMMEDIATE", 1)
    (wait,) = (one for one in recording.profile.lock_events if one.kind == "wait")
    ((found, _),) = LockHolders(recording.profile.lock_events).blockers_of(wait)
    assert found.statement == "BEGIN IMMEDIATE"


def test_of_a_transaction_that_writes_one_lock_is_kept(tmp_path: Path) -> None:
    """Its read lock adds no information."""
    path = database(tmp_path / "t.db", "delete")
    writer = connection(path)
    with queryprof.profile() as recording:
        writer.execute("BEGIN IMMEDIATE")
        time.sleep(1.05)  # shorter reads are not kept
        writer.execute("COMMIT")
    assert [hold.kind for hold in Report(recording.profile).lock_holds] == ["write"]


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_a_cursor_that_is_open_after_a_commit_reads_on(tmp_path: Path, mode: str) -> None:
    """After the commit, its connection holds a reader's lock."""
    path = database(tmp_path / "t.db", mode)
    db = connection(path)
    with queryprof.profile() as recording:
        rows = db.execute("SELECT a FROM t")
        rows.fetchone()
        db.execute("BEGIN")
        db.execute("UPDATE t SET a = 1 WHERE rowid = 1")
        time.sleep(0.3)
        db.execute("COMMIT")
        begun_ns = time.perf_counter_ns()
        time.sleep(1.05)  # shorter reads are not kept
        least_ns = time.perf_counter_ns() - begun_ns
        rows.close()
    (hold,) = [hold for hold in Report(recording.profile).lock_holds if hold.kind == "read"]
    assert hold.count == 1
    assert hold.max_ns >= least_ns
    assert hold.total_ns == hold.max_ns


def test_nobody_waits_for_a_lock_of_its_own_connection() -> None:
    """A writer does not wait for its own reads, nor for the write lock that it got at the end."""
    wait = event("wait", "UPDATE", 0, 100, connection=1)
    own = [event("write", "BEGIN", 50, 200, 1), event("read", "SELECT", 0, 200, 1)]
    other = [event("write", "INSERT", 0, 90, 2), event("read", "SELECT other", 0, 90, 2)]
    for writes in (False, True):
        asked = replace(wait, writes=writes)
        found = LockHolders([asked, *own, *other]).blockers_of(asked)
        assert [hold.connection for hold, _ in found] == [2]
        assert LockHolders([asked, *own]).blockers_of(asked) == []


@pytest.mark.parametrize("is_running", [True, False])
@pytest.mark.parametrize(("waits", "more"), [(10, ""), (11, "1 more: --top")])
def test_hidden_waits_are_counted(is_running: bool, waits: int, more: str) -> None:
    """Waits beyond ten, and current holds of a running process, are not shown."""
    events = tuple(event("wait", "UPDATE", 600 * n, 600 * n + 500, 1) for n in range(waits))
    running = frozenset({1} if is_running else ())
    text = io.StringIO()
    print_locks(Report(Profile((), (), lock_events=events, running=running)), text, width=100)
    assert ("1 more: --top" in text.getvalue()) == bool(more)
    assert ("queryprof locks FILE" in text.getvalue()) == is_running


def test_a_wait_for_who_was_not_seen_is_shown() -> None:
    """No process of this recording held a lock."""
    wait = event("wait", "UPDATE", 0, 500, 1)
    text = io.StringIO()
    print_locks(Report(Profile((), (), lock_events=(wait,))), text, width=100)
    assert "(not seen)" in text.getvalue()
