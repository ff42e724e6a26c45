"""Who held the lock if it was not another connection's write: a reader, an attached database, and
transactions that may not wait.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from core.work_programs import database, until_pending, until_refused

import queryprof
from queryprof.analysis.lock_holders import LockHolders
from queryprof.collect.reader import read_profile
from queryprof.model import LockEvent, Profile

pytestmark = pytest.mark.once


def holder_of_wait(profile: Profile, statement: str) -> LockEvent:
    (wait,) = [
        event
        for event in profile.lock_events
        if event.kind == "wait" and event.statement.startswith(statement)
    ]
    return LockHolders(profile.lock_events).blockers_of(wait)[0][0]


def beside(work: Callable[[threading.Event], None], name: str, then: Callable[[], None]) -> None:
    """Start `work` in a thread. Once it sets its event, run `then`, which waits for `work`'s
    lock.
    """
    ready = threading.Event()
    thread = threading.Thread(target=work, args=(ready,), name=name)
    thread.start()
    ready.wait()
    then()
    thread.join()


def until_main_is_refused() -> None:
    until_refused(f"self/task/{threading.main_thread().native_id}")


@pytest.mark.parametrize("reads", ["fetchone", "in a transaction"])
def test_a_commit_waits_for_a_reader(tmp_path: Path, reads: str) -> None:
    path = database(tmp_path / "t.db")

    def reader(ready: threading.Event) -> None:
        db = sqlite3.connect(path, isolation_level=None)
        if reads == "fetchone":
            rows = db.execute("SELECT a FROM t /* the reader */")
            rows.fetchone()
        else:
            db.execute("BEGIN")
            db.execute("SELECT a FROM t /* the reader */").fetchall()
        ready.set()
        until_pending(path)  # before, the main thread sleeps while it syncs the journal
        until_main_is_refused()
        db.close()

    def another(ready: threading.Event) -> None:
        """Another connection also reads, and finishes before the writer commits."""
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("SELECT max(a) FROM t").fetchall()
        db.close()
        ready.set()

    def write() -> None:
        db = sqlite3.connect(path, isolation_level=None, timeout=60)
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE t SET a = 7 WHERE a = 3")
        db.execute("COMMIT")
        db.close()

    with queryprof.profile() as recording:
        beside(another, "another", lambda: None)
        beside(reader, "the reader", write)
    holder = holder_of_wait(recording.profile, "COMMIT")
    assert (holder.kind, holder.thread.name, holder.statement) == (
        "read",
        "the reader",
        "SELECT a FROM t",
    )


@pytest.mark.parametrize("known", ["before", "after", "after 300 others"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_a_holder_that_has_attached_the_database(tmp_path: Path, mode: str, known: str) -> None:
    """The file was opened as a connection's main database either before it was attached, or
    after.
    """
    main, side = database(tmp_path / "main.db"), database(tmp_path / "side.db", mode)

    def holder(ready: threading.Event) -> None:
        db = sqlite3.connect(main, isolation_level=None)
        db.execute("ATTACH ? AS side", (str(side),))
        db.execute("BEGIN")
        db.execute("INSERT INTO side.t VALUES (1)")
        ready.set()
        until_main_is_refused()
        db.execute("COMMIT")
        db.close()

    def wait() -> None:
        db = sqlite3.connect(side, isolation_level=None, timeout=60)
        db.execute("DELETE FROM t WHERE a = 1")
        db.close()

    with queryprof.profile() as recording:
        if known == "before":
            sqlite3.connect(side).close()
        for number in range(300 if known == "after 300 others" else 0):
            sqlite3.connect(tmp_path / f"{number}.db").close()
        beside(holder, "the holder", wait)
    holding = holder_of_wait(recording.profile, "DELETE")
    assert (holding.thread.name, holding.statement) == (
        "the holder",
        "INSERT INTO side.t VALUES (?)",
    )


PROGRAM = """
    import os, sqlite3, subprocess, sys
    sys.path.insert(0, sys.argv[3])
    from core.work_programs import database, until_refused
    main, side = sys.argv[1:3]
    if len(sys.argv) == 4:
        pipe = subprocess.PIPE
        other = subprocess.Popen([sys.executable, *sys.argv, "other"], stdin=pipe, stdout=pipe, text=True)
        other.stdout.readline()
        print(os.getpid(), file=other.stdin, flush=True)
        db = sqlite3.connect(side, isolation_level=None, timeout=60)
        db.execute("DELETE FROM t WHERE a = 1")
        other.communicate()
    else:
        db = sqlite3.connect(main, isolation_level=None)
        db.execute("ATTACH ? AS side", (side,))
        db.execute("BEGIN")
        db.execute("INSERT INTO side.t VALUES (1)")
        print("holds", flush=True)
        until_refused(sys.stdin.readline().strip())
        db.execute("COMMIT")
    db.close()
"""


@pytest.mark.slow
def test_a_holder_of_another_process_that_has_attached_it(tmp_path: Path) -> None:
    """The other process has not opened the file as its main database, so it has no name for it."""
    main, side = database(tmp_path / "main.db"), database(tmp_path / "side.db")
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    command = [Path(sys.executable).with_name("queryprof"), "run", "--no-report", "-o", "t.qprof"]
    arguments = ["program.py", main, side, Path(__file__).parents[1]]
    subprocess.run([*command, *arguments], cwd=tmp_path, check=True)
    profile = read_profile(str(tmp_path / "t.qprof"))
    assert holder_of_wait(profile, "DELETE").statement == "INSERT INTO side.t VALUES (?)"


def errors_of(
    path: Path, work: Callable[[sqlite3.Connection, sqlite3.Connection], object]
) -> list[str]:
    """Return the names of the errors of one connection while another one works."""
    with queryprof.profile() as recording:
        one, other = (sqlite3.connect(path, isolation_level=None, timeout=0) for _ in range(2))
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            work(one, other)
        one.close()
        other.close()
    return [error.exception for error in recording.profile.errors]


def would_write(one: sqlite3.Connection, other: sqlite3.Connection) -> None:
    one.execute("BEGIN")
    one.execute("SELECT a FROM t").fetchone()
    other.execute("BEGIN IMMEDIATE")
    one.execute("UPDATE t SET a = 1")


def would_write_what_is_old(one: sqlite3.Connection, other: sqlite3.Connection) -> None:
    one.execute("BEGIN")
    one.execute("SELECT a FROM t").fetchone()
    other.execute("UPDATE t SET a = 2")
    one.execute("UPDATE t SET a = 1")


def waits_in_vain(one: sqlite3.Connection, other: sqlite3.Connection) -> None:
    other.execute("BEGIN IMMEDIATE")
    one.execute("UPDATE t SET a = 1")


def begins_in_vain(one: sqlite3.Connection, other: sqlite3.Connection) -> None:
    one.execute("SELECT a FROM t").fetchall()
    other.execute("BEGIN IMMEDIATE")
    one.execute("BEGIN IMMEDIATE")


LOCKED = "sqlite3.OperationalError: database is locked "


@pytest.mark.parametrize(
    ("mode", "work", "message"),
    [
        ("delete", would_write, "(SQLITE_BUSY of a read transaction)"),
        ("wal", would_write, "(SQLITE_BUSY of a read transaction)"),
        ("wal", would_write_what_is_old, "(SQLITE_BUSY_SNAPSHOT)"),
        ("delete", waits_in_vain, "(SQLITE_BUSY)"),
        ("wal", waits_in_vain, "(SQLITE_BUSY)"),
        ("delete", begins_in_vain, "(SQLITE_BUSY)"),
        ("wal", begins_in_vain, "(SQLITE_BUSY)"),
    ],
)
@pytest.mark.repeats
def test_a_transaction_that_read_first_may_not_wait(
    tmp_path: Path, mode: str, work: Callable[..., object], message: str
) -> None:
    """It differs from a transaction that waits in vain."""
    assert errors_of(database(tmp_path / "t.db", mode), work) == [LOCKED + message]


def test_the_errors_of_apsw_are_told_apart(tmp_path: Path) -> None:
    apsw = pytest.importorskip("apsw")
    path = database(tmp_path / "t.db", "wal")
    with queryprof.profile() as recording:
        one, other = apsw.Connection(str(path)), apsw.Connection(str(path))
        one.execute("BEGIN")
        one.execute("SELECT a FROM t").fetchall()
        other.execute("UPDATE t SET a = 2")
        with pytest.raises(apsw.BusyError):
            one.execute("UPDATE t SET a = 1")
        one.close()
        other.close()
    (error,) = recording.profile.errors
    assert error.exception == "apsw.BusyError: database is locked (SQLITE_BUSY_SNAPSHOT)"


class Own(sqlite3.OperationalError):
    """An exception of the program, raised within a call of the driver."""


@pytest.mark.parametrize("kind", ["a secret", "a key that runs code", "no str"])
def test_nothing_of_an_exception_is_run_or_kept(tmp_path: Path, kind: str) -> None:
    """Only its type and SQLite's own names are kept."""
    db = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    db.execute("CREATE TABLE t (a)")

    class Key:
        def __hash__(self) -> int:
            return hash("sqlite_errorname")

        def __eq__(self, other: object) -> bool:
            db.execute("INSERT INTO t VALUES ('run')")
            raise KeyboardInterrupt

    def rows() -> Iterator[tuple[int]]:
        error = Own("x")
        if kind == "a secret":
            error.sqlite_errorname = "SQLITE_BUSY S3cr3t"
        elif kind == "no str":
            error.sqlite_errorname = 5  # type: ignore[assignment]
        else:
            vars(error)[Key()] = 1  # type: ignore[index]
        raise error
        yield (1,)

    with queryprof.profile() as recording:
        with pytest.raises(Own):
            db.executemany("INSERT INTO t VALUES (?)", rows())
    assert [error.exception.rpartition(".")[2] for error in recording.profile.errors] == ["Own"]
    assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
    db.close()


MANY = """
    import sqlite3, sys, queryprof
    with queryprof.profile() as recording:
        db = sqlite3.connect("main.db", isolation_level=None)
        for number in range(4100):
            db.execute("ATTACH ? AS other", (f"{number}.db",))
            if number in (0, 4099):
                db.execute("CREATE TABLE other.t (a)")
            db.execute("DETACH other")
        late = sqlite3.connect("late.db", isolation_level=None)
        late.execute("CREATE TABLE t (a)")
    print(*sorted({hold.database.rpartition("/")[2] for hold in recording.profile.lock_holds}))
"""


@pytest.mark.slow
def test_many_attached_files_leave_room_for_main_ones(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(textwrap.dedent(MANY))
    output = subprocess.run(
        [sys.executable, "many.py"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.split()
    assert "late.db" in output
    assert "(attached)" in output
    assert "0.db" not in output
