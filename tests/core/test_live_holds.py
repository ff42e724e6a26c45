"""Who holds a lock now: recorded processes, with the line and the statement, and other
processes.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from core.work_programs import database

import queryprof
from queryprof.hooks import lock_notes
from queryprof.program.kernel_locks import find_lock_owners
from queryprof.region.live import ActivityReader, locks_held_here
from queryprof.trace.attached import file_identity

pytestmark = pytest.mark.once

Run = Callable[..., CompletedProcess[str]]

HOLDER = """
    import sqlite3, sys
    db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
    def hold():
        for statement in sys.argv[2:]:
            try:
                rows = db.execute(statement)
            except sqlite3.OperationalError:
                continue
            rows.fetchone() if statement.startswith("SELECT") else rows.fetchall()
        print("held", flush=True)
        sys.stdin.readline()
    hold()
"""


@contextmanager
def holding(folder: Path, path: Path, *statements: str, recorded: bool) -> Iterator[int]:
    """Start a process that has executed the statements, and waits."""
    (folder / "holder.py").write_text(textwrap.dedent(HOLDER))
    command = [sys.executable, "holder.py", str(path), *statements]
    if recorded:
        run = [
            str(Path(sys.executable).with_name("queryprof")),
            "run",
            "--no-report",
            "-o",
            "h.qprof",
        ]
        command = [*run, *command[1:]]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    try:
        yield process.pid
    finally:
        process.communicate("\n")


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_a_recorded_process_is_shown_with_its_line(
    tmp_path: Path, queryprof: Run, mode: str
) -> None:
    path = database(tmp_path / "t.db", mode)
    statements = ("BEGIN", "UPDATE t SET a = 7 WHERE a = 3", "SELECT max(a) FROM t")
    with holding(tmp_path, path, *statements, recorded=True):
        message = queryprof("locks", path).stdout
    assert "has a write transaction open: " in message
    assert ", thread MainThread\n    taken at hold() " in message
    assert "holder.py:7\n    by UPDATE t SET a = ? WHERE a = ?\n" in message
    assert "no process has a lock on it" in " ".join(queryprof("locks", path).stdout.split())


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize(
    ("statements", "does"),
    [
        (("BEGIN IMMEDIATE",), "has a write transaction open"),
        (("SELECT a FROM t",), "reads"),
        (("BEGIN", "SELECT max(a) FROM t"), "reads"),
    ],
)
def test_any_process_is_shown(
    tmp_path: Path, mode: str, statements: tuple[str, ...], does: str
) -> None:
    """The kernel names it; the file is not read."""
    path = database(tmp_path / "t.db", mode)
    with holding(tmp_path, path, *statements, recorded=False) as pid:
        (owner,) = find_lock_owners(str(path))
        assert (owner.pid, owner.does) == (pid, does)
        assert {"holder.py", str(path)} <= {*owner.command}  # an emulator adds its own
    assert find_lock_owners(str(path)) == ()


def test_who_waits_for_readers_is_not_writing_yet(tmp_path: Path) -> None:
    """Its COMMIT was refused, and keeps others from beginning to read."""
    path = database(tmp_path / "t.db")
    writes = ("BEGIN", "UPDATE t SET a = 7", "COMMIT")
    with holding(tmp_path, path, "SELECT a FROM t", recorded=False) as reader:
        with holding(tmp_path, path, *writes, recorded=False) as writer:
            found = [(owner.pid, owner.does) for owner in find_lock_owners(str(path))]
    waits = "waits for readers before it writes: no other process can begin to read or write"
    assert found == [(writer, waits), (reader, "reads")]
    with holding(tmp_path, path, "BEGIN EXCLUSIVE", recorded=False) as pid:
        (owner,) = find_lock_owners(str(path))
    assert (owner.pid, owner.does) == (pid, "is writing: no other process can read or write")


def test_the_writer_comes_before_the_readers(tmp_path: Path) -> None:
    path = database(tmp_path / "t.db", "wal")
    with (
        holding(tmp_path, path, "SELECT a FROM t", recorded=False) as reader,
        holding(tmp_path, path, "BEGIN IMMEDIATE", recorded=False) as writer,
        holding(tmp_path, path, "PRAGMA user_version", recorded=False) as other,
    ):
        found = [(owner.pid, owner.does) for owner in find_lock_owners(str(path))]
    assert found == [
        (writer, "has a write transaction open"),
        (reader, "reads"),
        (other, "has it open"),
    ]


def held_by(pid: int, path: Path) -> list[str]:
    """Return the statements of a recorded process since it took the file's write lock."""
    watch = ActivityReader()
    found = [
        one.statement
        for process in watch.read_activity()
        for one in process.held
        if one.pid == pid and one.identity == file_identity(os.stat(path))
    ]
    watch.close()
    return found


PROGRAM = """
    import os, sqlite3, sys, queryprof
    path = sys.argv[1]
    def until_asked(what):
        print(what, os.getpid(), flush=True)
        sys.stdin.readline()
    queryprof.install("p.qprof")
    connections = [sqlite3.connect(path + str(n), isolation_level=None) for n in range(100)]
    for db in connections:
        db.execute("BEGIN IMMEDIATE")
    until_asked("held")
    for db in connections:
        db.execute("COMMIT")
    until_asked("released")
    connections[0].execute("BEGIN IMMEDIATE")
    queryprof.uninstall()
    queryprof.install("p2.qprof")
    until_asked("of another recording")
    connections[0].execute("COMMIT")
    connections[0].execute("BEGIN EXCLUSIVE")
    until_asked("held again")
"""


def test_locks_are_shown_while_they_are_held(tmp_path: Path) -> None:
    """As many are shown as fit. Holds of another recording are unknown and not shown."""
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    command = [sys.executable, "program.py", str(tmp_path / "t.db")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin
        assert program.stdout
        counts, statements = [], []
        for line in program.stdout:
            pid = int(line.split()[-1])
            found = [held_by(pid, Path(f"{tmp_path}/t.db{number}")) for number in (0, 1, 99)]
            counts.append(sum(map(len, found)))
            statements.append(found[0])
            program.stdin.write("\n")
            program.stdin.flush()
    assert counts[0] >= 1  # 64 of 100 locks fit
    assert counts[1:] == [0, 0, 1]
    assert statements[3] == ["BEGIN EXCLUSIVE"]


def test_a_forked_child_holds_nothing(tmp_path: Path) -> None:
    path = database(tmp_path / "t.db", "delete")
    queryprof.install(tmp_path / "f.qprof")
    try:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        child = os.fork()
        if not child:
            db.execute("SELECT 1")
            import time

            time.sleep(60)
            os._exit(0)
        try:
            assert held_by(child, path) == []
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
        db.execute("COMMIT")
        db.close()
    finally:
        queryprof.uninstall()


@pytest.mark.parametrize(
    ("file", "why"), [("nothing.db", "no such file"), ("/dev/null", "not a file")]
)
def test_paths_that_are_not_files_are_reported(queryprof: Run, file: str, why: str) -> None:
    result = queryprof("locks", file)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"queryprof: locks: {file}: {why}\n"


NOTED = """
    import sqlite3, sys, traceback
    db = sqlite3.connect(sys.argv[1], timeout=0)
    db.execute("SELECT 1").fetchall()
    try:
        db.execute("UPDATE t SET a = 1")
    except sqlite3.OperationalError as error:
        print([type(error).__name__, str(error), error.args])
        print("\\n".join(getattr(error, "__notes__", [])))
"""


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.repeats
def test_an_exception_has_a_note_about_the_lock_holder(
    tmp_path: Path, queryprof: Run, mode: str
) -> None:
    """The note is optional. Type, text and arguments of the exception do not change."""
    path = database(tmp_path / "t.db", mode)
    (tmp_path / "noted.py").write_text(textwrap.dedent(NOTED))
    with holding(tmp_path, path, "BEGIN", "DELETE FROM t WHERE a = 3", recorded=True):
        bare = queryprof("run", "--no-report", "-o", "n.qprof", "noted.py", path).stdout
        output = queryprof(
            "run", "--no-report", "--explain-locks", "-o", "n.qprof", "noted.py", path
        ).stdout
    facts, _, notes = output.partition("\n")
    assert bare == f"{facts}\n\n"
    assert notes.startswith("queryprof: t.db is locked:\n  process ")
    assert " has a write transaction open: " in notes
    assert " by DELETE FROM t WHERE a = ?, thread MainThread" in notes
    assert "holder.py:7" in notes


def test_a_transaction_of_an_older_state_is_refused_at_once(tmp_path: Path, queryprof: Run) -> None:
    """No lock is held: another connection has committed since the transaction read."""
    path = database(tmp_path / "t.db", "wal")
    program = NOTED.replace(
        'db.execute("SELECT 1")',
        'other = sqlite3.connect(sys.argv[1], isolation_level=None); db.execute("BEGIN");'
        ' db.execute("SELECT a FROM t").fetchone(); other.execute("UPDATE t SET a = a + 1")',
    )
    (tmp_path / "noted.py").write_text(textwrap.dedent(program))
    output = queryprof(
        "run", "--no-report", "--explain-locks", "-o", "n.qprof", "noted.py", path
    ).stdout
    assert "another connection has committed since this transaction began to read" in output


def test_a_thread_of_the_same_process_is_reported(tmp_path: Path, queryprof: Run) -> None:
    path = database(tmp_path / "t.db", "wal")
    program = NOTED.replace(
        'db.execute("SELECT 1")',
        'other = sqlite3.connect(sys.argv[1]); other.execute("BEGIN IMMEDIATE");'
        ' db.execute("SELECT 1")',
    )
    (tmp_path / "noted.py").write_text(textwrap.dedent(program))
    output = queryprof(
        "run", "--no-report", "--explain-locks", "-o", "n.qprof", "noted.py", path
    ).stdout
    assert "this process has a write transaction open" in output
    assert " by BEGIN IMMEDIATE, thread MainThread" in output


def test_a_note_that_fails_changes_nothing(tmp_path: Path) -> None:
    from queryprof.core import _core

    path = database(tmp_path / "t.db", "wal")

    def fails(_error: BaseException, _database: str, _has_write_lock: bool) -> None:
        raise ValueError("it cannot be explained")

    with queryprof.profile() as recording:
        _core.set_lock_refusal_explainer(fails)
        one, other = (sqlite3.connect(path, isolation_level=None, timeout=0) for _ in range(2))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked") as caught:
            one.execute("UPDATE t SET a = 1")
        _core.set_lock_refusal_explainer(None)
        one.close()
        other.close()
    assert not hasattr(caught.value, "__notes__")
    assert sum(error.count for error in recording.profile.errors) == 1


def test_memory_of_its_own_is_looked_into(tmp_path: Path) -> None:
    path = database(tmp_path / "t.db", "wal")
    with queryprof.profile():
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        (held,) = locks_held_here()
        db.execute("COMMIT")
        assert locks_held_here() == []
        db.close()
    assert (held.pid, held.statement) == (os.getpid(), "BEGIN IMMEDIATE")
    assert held.path[0].function == "test_memory_of_its_own_is_looked_into"


READER = """
    import sqlite3, sys
    reader, writer = (sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0) for _ in range(2))
    if sys.argv[2] == "own":
        rows = reader.execute("SELECT a FROM t")
        rows.fetchone()
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE t SET a = 1 WHERE a = 3")
    try:
        writer.execute("COMMIT")
    except sqlite3.OperationalError as error:
        print("\\n".join(getattr(error, "__notes__", [])))
"""


@pytest.mark.parametrize("whose", ["own", "another's"])
@pytest.mark.repeats
def test_a_commit_that_waits_for_readers_does_not_name_itself(
    tmp_path: Path, queryprof: Run, whose: str
) -> None:
    path = database(tmp_path / "t.db")
    (tmp_path / "reader.py").write_text(textwrap.dedent(READER))
    arguments = ("--no-report", "--explain-locks", "-o", "n.qprof", "reader.py", path, whose)
    with ExitStack() as stack:
        if whose != "own":
            stack.enter_context(holding(tmp_path, path, "SELECT a FROM t", recorded=False))
        output = queryprof("run", *arguments).stdout
    assert "this connection has the write lock, and waits for readers to end" in output
    assert ("a cursor of this process with rows left" in output) == (whose == "own")
    assert (" reads: " in output) == (whose != "own")


def test_notes_end_when_they_took_long(tmp_path: Path) -> None:
    """A program that retries again and again is not slowed down."""
    path, error = database(tmp_path / "t.db"), ValueError()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    before = lock_notes.budget.spent_s
    try:
        lock_notes.budget.spent_s = 1e9
        lock_notes.add_lock_note(error, str(path), has_write_lock=False, is_upgrade=False)
        assert not hasattr(error, "__notes__")
    finally:
        lock_notes.budget.spent_s = before
    db.close()
