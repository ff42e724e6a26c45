"""Measure SQLite's lock waits, syncs, reads and writes, and find the holders of locks."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest
from core.work_programs import LONGEST_S, until_refused

import queryprof
from queryprof.collect.reader import read_profile
from queryprof.model import FileWork, Profile

pytestmark = pytest.mark.once

CLOCKS_AGREE = 1.002
"""The core's clock and Python's differ by less than this."""

MODES = ("delete", "wal", "truncate", "persist")


def opened(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    return connection


def work_of(profile: Profile, statement: str) -> FileWork:
    (found,) = [work for work in profile.file_work if work.statement.startswith(statement)]
    return found


class Held:
    """A write lock, and how long it was held by the program's own clock.

    Attributes:
        least_s, most_s: how long it was held.
        refused_s: the least time that another connection waited.
    """

    def __init__(self, connection: sqlite3.Connection, seconds: float, other: Waiter) -> None:
        before_s = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        began_s = time.perf_counter()
        other.start()
        other.requests.wait(LONGEST_S)
        until_refused(f"self/task/{other.native_id}")
        refused_s = time.perf_counter()
        time.sleep(seconds)
        end_s = time.perf_counter()
        connection.execute("COMMIT")
        self.most_s = time.perf_counter() - before_s
        self.least_s, self.refused_s = end_s - began_s, end_s - refused_s


class Waiter(threading.Thread):
    """Waits for the lock. `waited_s` includes its own commit."""

    def __init__(self, path: Path) -> None:
        super().__init__(name="waiter")
        self.path, self.requests, self.waited_s = path, threading.Event(), 0.0

    def run(self) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=LONGEST_S)
        started = time.perf_counter()
        self.requests.set()
        connection.execute("UPDATE t SET a = 2")
        self.waited_s = time.perf_counter() - started
        connection.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.repeats
def test_a_wait_for_a_lock_and_its_holder(tmp_path: Path, mode: str) -> None:
    """Both are as long as a clock in the program shows before and after."""
    path = tmp_path / "t.db"
    other = Waiter(path)
    with queryprof.profile(tmp_path / "t.qprof"):
        connection = opened(path, mode)
        connection.execute("CREATE TABLE t (a)")
        held = Held(connection, 0.3, other)
        other.join()
        connection.close()
    profile = read_profile(str(tmp_path / "t.qprof"))
    waited = work_of(profile, "UPDATE t")
    assert waited.lock_waits == 1
    assert waited.lock_ns == waited.max_lock_ns
    assert held.refused_s <= waited.lock_ns / 1e9 * CLOCKS_AGREE
    # The rest is its own commit.
    known_ns = waited.lock_ns + waited.sync_ns + waited.read_ns + waited.write_ns
    assert known_ns / 1e9 <= other.waited_s * CLOCKS_AGREE
    (hold,) = [hold for hold in profile.lock_holds if hold.statement == "BEGIN IMMEDIATE"]
    assert hold.kind == "write"
    assert hold.database == str(path)
    assert held.least_s <= hold.total_ns / 1e9 * CLOCKS_AGREE
    assert hold.total_ns / 1e9 <= held.most_s * CLOCKS_AGREE
    assert hold.thread.name == "MainThread"
    assert (hold.path[0].function, hold.end_path[0].function) == ("Held.__init__", "Held.__init__")
    assert hold.end_statement == "COMMIT"
    assert hold.database_of_ns == hold.total_ns
    assert hold.database_ns / 1e9 <= (held.most_s - held.least_s) * CLOCKS_AGREE
    (wait,) = [
        event
        for event in profile.lock_events
        if event.kind == "wait" and event.statement.startswith("UPDATE")
    ]
    (event,) = [
        event
        for event in profile.lock_events
        if event.kind == "write" and event.statement == "BEGIN IMMEDIATE"
    ]
    assert wait.statement.startswith("UPDATE t")
    assert event.start_unix_ns < wait.start_unix_ns < event.start_unix_ns + event.duration_ns


def test_a_wait_in_a_handler_of_the_programs_own(tmp_path: Path) -> None:
    """A statement that gives up has also waited."""
    path = tmp_path / "t.db"
    with queryprof.profile(tmp_path / "t.qprof"):
        holder, other = opened(path, "delete"), sqlite3.connect(path, timeout=0.25)
        holder.execute("CREATE TABLE t (a)")
        holder.execute("BEGIN IMMEDIATE")
        started = time.perf_counter()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("INSERT INTO t VALUES (1)")
        waited_s = time.perf_counter() - started
        holder.execute("ROLLBACK")
        holder.close()
        other.close()
    profile = read_profile(str(tmp_path / "t.qprof"))
    # sqlite3 sends BEGIN first; the INSERT waits, 0.25 s in total.
    assert 0.25 <= work_of(profile, "INSERT").lock_ns / 1e9 * CLOCKS_AGREE
    assert work_of(profile, "INSERT").lock_ns / 1e9 <= waited_s * CLOCKS_AGREE


def test_syncs_and_bytes_are_counted(tmp_path: Path) -> None:
    with queryprof.profile(tmp_path / "t.qprof"):
        connection = opened(tmp_path / "t.db", "delete")
        connection.execute("CREATE TABLE t (a)")
        for _ in range(20):
            connection.execute("INSERT INTO t VALUES (zeroblob(10000))")
        connection.close()
        again = sqlite3.connect(tmp_path / "t.db")
        rows = [len(row[0]) for row in again.execute("SELECT a FROM t")]
        again.close()
    assert rows == [10000] * 20
    profile = read_profile(str(tmp_path / "t.qprof"))
    inserted = work_of(profile, "INSERT")
    assert inserted.calls == 20
    assert inserted.syncs in (40, 60, 80)  # depends on how this SQLite was built
    assert inserted.written_bytes > 20 * 10_000
    assert 0 < inserted.sync_ns
    read = [work for work in profile.file_work if work.statement.startswith("SELECT a")]
    assert sum(work.read_bytes for work in read) > 20 * 10_000
    spent_ns = sum(work.read_ns + work.write_ns + work.sync_ns for work in profile.file_work)
    assert 0 < spent_ns < sum(aggregate.self_ns for aggregate in profile.aggregates)


def test_a_database_in_memory_has_no_file_work() -> None:
    with queryprof.profile() as recording:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,)] * 1000)
        connection.execute("SELECT * FROM t ORDER BY a").fetchall()
        connection.close()
    assert recording.profile.file_work == ()
    assert recording.profile.lock_holds == ()


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_files_outlive_the_recording(tmp_path: Path, mode: str) -> None:
    """Files opened during the recording keep working. Files opened after it use only SQLite's
    functions.
    """
    with queryprof.profile():
        connection = opened(tmp_path / "t.db", mode)
        connection.execute("CREATE TABLE t (a)")
        connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("COMMIT")
    after = sqlite3.connect(tmp_path / "t.db")
    with queryprof.profile() as recording:
        connection.execute("INSERT INTO t VALUES (2)")
    assert [row[0] for row in after.execute("SELECT a FROM t")] == [1, 2]
    assert work_of(recording.profile, "INSERT").syncs > 0
    connection.close()
    after.close()


def test_a_transaction_that_another_thread_ends(tmp_path: Path) -> None:
    """The work of its thread meanwhile is unknown."""
    with queryprof.profile() as recording:
        connection = opened(tmp_path / "t.db", "delete")
        connection.execute("BEGIN IMMEDIATE")
        other = threading.Thread(target=connection.execute, args=("COMMIT",))
        other.start()
        other.join()
        connection.close()
    (hold,) = [h for h in recording.profile.lock_holds if h.statement == "BEGIN IMMEDIATE"]
    assert hold.count == 1
    assert hold.database_of_ns == 0


def test_a_long_read_transaction(tmp_path: Path) -> None:
    with queryprof.profile() as recording:
        connection = opened(tmp_path / "t.db", "wal")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1), (2), (3)")
        cursor = connection.execute("SELECT a FROM t")
        cursor.fetchone()
        time.sleep(1.1)
        log_bytes = (tmp_path / "t.db-wal").stat().st_size
        cursor.fetchall()
        connection.close()
    (hold,) = [h for h in recording.profile.lock_holds if h.kind == "read"]
    assert hold.log_bytes == log_bytes > 0
    assert hold.statement == "SELECT a FROM t"
    assert hold.max_ns > 1e9


def test_what_is_released_outside_of_calls_belongs_to_its_own_recording(tmp_path: Path) -> None:
    """A cursor's end releases its read lock. By then another recording has begun, with other
    statement numbers.
    """
    connection = opened(tmp_path / "t.db", "wal")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (1), (2), (3)")
    with queryprof.profile() as first:
        cursor = connection.execute("SELECT a FROM t")
        cursor.fetchone()
        time.sleep(1.1)
        cursor.close()
    with queryprof.profile() as second:
        connection.execute("SELECT 1")
    connection.close()
    (hold,) = [h for h in first.profile.lock_holds if h.kind == "read"]
    assert (hold.statement, hold.end_statement) == ("SELECT a FROM t", "(unknown)")
    assert [h.kind for h in second.profile.lock_holds if h.kind == "read"] == []


def test_rows_changed_in_a_hold(tmp_path: Path) -> None:
    """The rows are changed in a transaction, in a single statement, in a script and by
    executemany().
    """
    with queryprof.profile() as recording:
        connection = opened(tmp_path / "t.db", "delete")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(7)])
        connection.execute("UPDATE t SET a = 1 WHERE a < 3")
        connection.execute("COMMIT")
        connection.execute("DELETE FROM t WHERE a = 1")
        connection.executescript("BEGIN; UPDATE t SET a = 9; INSERT INTO t VALUES (4); COMMIT")
        connection.close()
    holds = {hold.statement.split()[0]: hold for hold in recording.profile.lock_holds}
    assert holds["INSERT"].end_statement == "COMMIT"
    changed = {name: hold.changed_rows for name, hold in holds.items()}
    assert changed == {"CREATE": 0, "INSERT": 10, "DELETE": 3, "BEGIN;": 5}


def test_names_of_attached_databases_are_not_shown(tmp_path: Path) -> None:
    """Their names are values in statements."""
    with queryprof.profile() as recording:
        connection = opened(tmp_path / "t.db", "delete")
        connection.execute("ATTACH ? AS other", (str(tmp_path / "secret.db"),))
        connection.execute("CREATE TABLE other.t (a)")
        connection.close()
    assert any(hold.database.startswith("(attached ") for hold in recording.profile.lock_holds)
    assert not any("secret" in hold.database for hold in recording.profile.lock_holds)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_connection_that_was_open_before(tmp_path: Path, mode: str) -> None:
    """Its files are watched from its first statement on."""
    connection = opened(tmp_path / "t.db", mode)
    connection.execute("CREATE TABLE t (a)")
    with queryprof.profile() as recording:
        connection.execute("SELECT 1")
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    assert work_of(recording.profile, "INSERT").syncs > 0
    assert [h.statement for h in recording.profile.lock_holds] == ["INSERT INTO t VALUES (?)"]
