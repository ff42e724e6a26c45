"""Tools that use SQLite's VFSs and files, before, during and after a recording."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from queryprof.collect.reader import read_profile

TOOLS = ("copied", "tabled", "stacked", "late")

PROGRAM = """
    import ctypes, sqlite3, sys
    library, name, moment = sys.argv[1:]
    load = ctypes.CDLL(library).tools
    if moment == "before":
        load(0)
    import queryprof
    queryprof.install("x.qprof")
    if moment != "before":
        load(moment == "as default")
    if moment == "across":
        queryprof.uninstall()
    for _ in range(3):
        db = sqlite3.connect(f"file:t.db?vfs={name}", uri=True)
        db.execute("CREATE TABLE IF NOT EXISTS t (a)")
        db.execute("INSERT INTO t VALUES (1)")
        db.commit()
        db.close()
    if moment == "twice":
        queryprof.uninstall()
        queryprof.install("y.qprof")
    db = sqlite3.connect("t.db")
    print(db.execute("SELECT count(*) FROM t").fetchall())
    db.execute("VACUUM")
    db.execute("ATTACH 'other.db' AS other")
    db.close()
"""


def run(folder: Path, program: str, *arguments: str) -> str:
    (folder / "program.py").write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "program.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.once
@pytest.mark.parametrize("moment", ["before", "after", "as default", "across", "twice"])
@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.repeats
def test_a_tool_works(name: str, moment: str, tools: str, tmp_path: Path) -> None:
    if not tools:
        pytest.skip("there is no compiler, or no sqlite3.h")
    assert run(tmp_path, PROGRAM, tools, name, moment) == "[(3,)]\n"


@pytest.mark.slow
def test_unwatched_files_are_reported(tools: str, tmp_path: Path) -> None:
    """A VFS that copied SQLite's earlier bypasses queryprof's functions. A VFS stacked on
    queryprof's does not.
    """
    if not tools:
        pytest.skip("there is no compiler, or no sqlite3.h")
    unseen = {}
    for name, moment in (("copied", "before"), ("stacked", "before"), ("stacked", "after")):
        run(tmp_path, PROGRAM, tools, name, moment)
        (process,) = read_profile(str(tmp_path / "x.qprof")).processes
        unseen[name, moment] = process.unseen_files
        (tmp_path / "x.qprof").unlink()
        (tmp_path / "t.db").unlink()

    assert unseen == {("copied", "before"): 3, ("stacked", "before"): 0, ("stacked", "after"): 0}


def test_a_journal_in_memory_stays_one(tmp_path: Path) -> None:
    """SQLite recognizes it by its table of functions. Recording begins in the middle of
    a COMMIT.
    """
    program = """
        import sqlite3
        db = sqlite3.connect("t.db", isolation_level=None)
        db.execute("PRAGMA journal_mode = MEMORY").fetchall()
        db.execute("CREATE TABLE t (a)")
        db.execute("BEGIN")
        db.execute("INSERT INTO t VALUES (1)")
        import queryprof
        queryprof.install("x.qprof")
        db.execute("INSERT INTO t VALUES (2)")
        db.execute("COMMIT")
        print(db.execute("SELECT sum(a) FROM t").fetchone())
    """
    assert run(tmp_path, program) == "(3,)\n"


@pytest.mark.parametrize("file", ["file:x?mode=memory&cache=shared", "file:x.db?cache=shared"])
@pytest.mark.repeats
def test_a_cache_is_shared_with_connections_from_before(file: str, tmp_path: Path) -> None:
    """SQLite shares it between connections whose VFS is the same struct."""
    program = f"""
        import sqlite3
        first = sqlite3.connect({file!r}, uri=True)
        first.execute("CREATE TABLE t (a)")
        import queryprof
        queryprof.install("x.qprof")
        second = sqlite3.connect({file!r}, uri=True)
        second.execute("PRAGMA read_uncommitted = 1")
        first.execute("INSERT INTO t VALUES (1)")
        print(second.execute("SELECT count(*) FROM t").fetchone())
        queryprof.uninstall()
        third = sqlite3.connect({file!r}, uri=True)
        third.execute("PRAGMA read_uncommitted = 1")
        print(third.execute("SELECT count(*) FROM t").fetchone())
    """
    assert run(tmp_path, program) == "(1,)\n(1,)\n"


def test_a_transaction_that_began_before_is_seen(tmp_path: Path) -> None:
    """Its connection's files are watched from its first recorded call on."""
    program = """
        import sqlite3
        db = sqlite3.connect("t.db", isolation_level=None)
        db.execute("CREATE TABLE t (a)")
        import queryprof
        queryprof.install("x.qprof")
        for number in range(10):
            db.execute("INSERT INTO t VALUES (?)", (number,))
    """
    run(tmp_path, program)
    profile = read_profile(str(tmp_path / "x.qprof"))
    (work,) = [work for work in profile.file_work if work.statement.startswith("INSERT")]
    assert work.calls == 10
    assert work.syncs >= 30  # journal, database, directory
    assert profile.processes[0].unseen_files == 0


@pytest.mark.once
def test_a_forked_child_counts_its_own_unwatched_files(tools: str, tmp_path: Path) -> None:
    if not tools:
        pytest.skip("there is no compiler, or no sqlite3.h")
    forks = (
        PROGRAM
        + """
    import os
    child = os.fork()
    if not child:
        sqlite3.connect(":memory:").execute("SELECT 1").fetchone()
    else:
        os.waitpid(child, 0)
    """
    )
    run(tmp_path, forks, tools, "copied", "before")
    unseen = [read_profile(str(one)).processes[0].unseen_files for one in tmp_path.glob("*.qprof")]
    assert sorted(unseen) == [0, 3]
