"""A program's files behave the same with and without queryprof, however they are opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import json, os, sqlite3, sys, threading
    path, uri, mode = sys.argv[1:4]
    first = sqlite3.connect(path)
    first.execute(f"PRAGMA journal_mode = {mode}")
    first.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, a TEXT)")
    first.executemany("INSERT INTO t (a) VALUES (?)", [("x" * 900,)] * 50)
    first.commit()
    first.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    first.close()
    seen = []
    def tell(function, *arguments):
        try:
            seen.append(repr(function(*arguments)))
        except Exception as error:
            seen.append(f"{type(error).__name__}: {error}")
    db = None
    try:
        db = sqlite3.connect(f"file:{path}?{uri}", uri=True, timeout=0.1, check_same_thread=False)
    except Exception as error:
        seen.append(f"{type(error).__name__}: {error}")
    if db:
        ask = lambda sql: db.execute(sql).fetchall()
        for sql in (
            "PRAGMA mmap_size = 1000000", "SELECT count(*), sum(length(a)) FROM t",
            "INSERT INTO t (a) VALUES ('y')", "BEGIN IMMEDIATE", "ROLLBACK", "COMMIT",
            "CREATE TEMP TABLE s AS SELECT * FROM t", "SELECT count(*) FROM s",
            "PRAGMA temp_store = FILE", "SELECT a FROM t ORDER BY a || id LIMIT 1",
            f"ATTACH '{path}-other' AS other", "CREATE TABLE IF NOT EXISTS other.o (a)",
            "INSERT INTO other.o SELECT id FROM t", "SELECT count(*) FROM other.o", "DETACH other",
            "PRAGMA locking_mode = EXCLUSIVE", "INSERT INTO t (a) VALUES ('z')",
            "PRAGMA locking_mode = NORMAL", "SELECT count(*) FROM t", "PRAGMA integrity_check",
            "VACUUM", "PRAGMA journal_mode",
        ):
            tell(ask, sql)
        tell(db.commit)
        closer = threading.Thread(target=db.close)
        closer.start()
        closer.join()
    after = sqlite3.connect(path)
    tell(lambda: after.execute("SELECT count(*), max(id) FROM t").fetchall())
    child = os.fork()
    if child == 0:
        inner = sqlite3.connect(path, timeout=5)
        inner.execute("INSERT INTO t (a) VALUES ('child')")
        inner.commit()
        inner.close()
        os._exit(0)
    os.waitpid(child, 0)
    tell(lambda: after.execute("SELECT count(*) FROM t").fetchall())
    after.close()
    print(json.dumps([seen, sorted(os.listdir(os.path.dirname(path)))]))
"""

pytestmark = pytest.mark.once

URIS = (
    "mode=rw",
    "mode=ro",
    "immutable=1",
    "nolock=1",
    "vfs=unix-dotfile",
    "vfs=unix-none",
    "vfs=unix-excl",
    "cache=shared",
    "psow=0",
)


def seen(folder: Path, uri: str, mode: str, *command: str | Path) -> object:
    folder.mkdir()
    (folder.parent / "program.py").write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run(
        [*command, folder.parent / "program.py", folder / "t.db", uri, mode],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder.parent,
    )
    return json.loads(done.stdout.replace(str(folder), "FOLDER"))


@pytest.mark.parametrize("mode", ["delete", "wal", "memory"])
@pytest.mark.parametrize("uri", URIS)
@pytest.mark.repeats
def test_uris(tmp_path: Path, uri: str, mode: str) -> None:
    bare = seen(tmp_path / "bare", uri, mode, sys.executable)
    run = (Path(sys.executable).with_name("queryprof"), "run", "--no-report", "-o", "t.qprof")
    assert seen(tmp_path / "recorded", uri, mode, *run) == bare


APSW = """
    import apsw, os, sys
    path = sys.argv[1]
    calls = []
    class Reversed(apsw.VFS):
        def __init__(self):
            super().__init__("reversed", "")
        def xOpen(self, name, flags):
            calls.append("open")
            return File(name, flags)
        def xDelete(self, name, sync):
            calls.append("delete")
            return super().xDelete(name, sync)
    class File(apsw.VFSFile):
        def __init__(self, name, flags):
            super().__init__("", name, flags)
        def xRead(self, amount, offset):
            calls.append("read")
            return bytes(b ^ 0x55 for b in super().xRead(amount, offset))
        def xWrite(self, data, offset):
            calls.append("write")
            super().xWrite(bytes(b ^ 0x55 for b in data), offset)
        def xSync(self, flags):
            calls.append("sync")
            return super().xSync(flags)
    vfs = Reversed()
    db = apsw.Connection(path, vfs="reversed")
    db.execute("CREATE TABLE t (a)")
    with db:
        for number in range(50):
            db.execute("INSERT INTO t VALUES (?)", (number,))
    print(list(db.execute("SELECT count(*), sum(a) FROM t")))
    db.close()
    print(open(path, "rb").read(16) == b"SQLite format 3\\0")
    print(len(calls), {name: calls.count(name) for name in sorted(set(calls))})
"""


def test_a_vfs_of_the_programs_own(tmp_path: Path) -> None:
    """The VFS encrypts in Python, and is called equally often."""
    pytest.importorskip("apsw")
    (tmp_path / "program.py").write_text(textwrap.dedent(APSW))
    outputs = []
    run = [str(Path(sys.executable).with_name("queryprof")), "run", "--no-report", "-o", "t.qprof"]
    for name, command in (("bare", [sys.executable]), ("recorded", run)):
        done = subprocess.run(
            [*command, "program.py", f"{name}.db"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert (tmp_path / "bare.db").read_bytes() == (tmp_path / "recorded.db").read_bytes()


def test_a_killed_program_leaves_a_good_database(tmp_path: Path) -> None:
    """SIGKILL comes within a transaction: the journal is rolled back, and the trace has the
    writes.
    """
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import os, signal, sqlite3
        db = sqlite3.connect("t.db", isolation_level=None)
        db.execute("CREATE TABLE t (a)")
        for number in range(20):
            db.execute("INSERT INTO t VALUES (1)")
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES (2)")
        os.kill(os.getpid(), signal.SIGKILL)
        """)
    )
    run = [Path(sys.executable).with_name("queryprof"), "run", "--no-report", "-o", "t.qprof"]
    subprocess.run([*run, program], cwd=tmp_path, check=False, capture_output=True)
    import sqlite3

    from queryprof.collect.reader import read_profile

    connection = sqlite3.connect(tmp_path / "t.db")
    assert connection.execute("SELECT count(*), max(a) FROM t").fetchone() == (20, 1)
    connection.close()
    profile = read_profile(os.fspath(tmp_path / "t.qprof"))
    (inserts,) = [w for w in profile.file_work if w.statement.startswith("INSERT") and w.syncs]
    assert inserts.calls == 20


EXCHANGED = """
    import ctypes, sqlite3, _sqlite3
    import queryprof
    find = ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    Open = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_int, ctypes.c_void_p)
    kept = []
    for name in (b"unix", b"unix-none", b"unix-dotfile", b"unix-excl"):
        place = ctypes.c_void_p.from_address(find(name) + 2 * 8 + 3 * 8)  # xOpen
        theirs = Open(place.value)
        ours = Open(lambda *arguments, theirs=theirs: theirs(*arguments))
        kept += [theirs, ours]
        place.value = ctypes.cast(ours, ctypes.c_void_p).value
    with queryprof.profile() as recording:
        db = sqlite3.connect("other.db")
        db.execute("CREATE TABLE t (a)")
        db.close()
    print(recording.profile.processes[0].files_off, recording.profile.file_work)
"""


def test_functions_that_others_have_put_there_are_left_alone(tmp_path: Path) -> None:
    """The report then says that SQLite's file work is unknown."""
    (tmp_path / "program.py").write_text(textwrap.dedent(EXCHANGED))
    found = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found.stdout == "the file functions of SQLite's VFS are not its own ()\n"
