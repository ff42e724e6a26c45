"""Workloads of drivers that hide their connections, and of connections that nobody closes."""

from __future__ import annotations

import resource
import sqlite3
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Run
from queryprof.replay.player import Order, play
from queryprof.trace.workload import INSIDE, OUTSIDE, Execution, read_workload

pytestmark = pytest.mark.once

Script = Callable[[str], Path]
DESCRIPTORS = 64
ROWS = "SELECT * FROM t ORDER BY a"
DB_API = """
    import {driver} as driver
    db = driver.connect("t.db")
    for i in range(40):
        db.execute("SELECT count(*), sum(a) FROM t WHERE c = ?", (i % 7,)).fetchall()
        db.execute("INSERT INTO t (b, c) VALUES (?, ?)", (f"new {{i}}", i))
        if i % 10 == 0:
            db.commit()
        elif i % 10 == 5:
            db.rollback()
    with db:
        db.execute("DELETE FROM t WHERE c = 3")
    db.executescript("UPDATE t SET c = 8 WHERE c = 9; UPDATE t SET b = 'x' WHERE c = 8")
    other = driver.connect("t.db", isolation_level=None)
    other.execute("UPDATE t SET b = 'auto' WHERE a = 7")
    memory = driver.connect(":memory:")
    memory.execute("CREATE TABLE t (a)")
"""
APSW = """
    import apsw
    db = apsw.Connection("t.db")
    for i in range(40):
        list(db.execute("SELECT count(*), sum(a) FROM t WHERE c = ?", (i % 7,)))
        if i % 5 == 0:
            db.execute("BEGIN IMMEDIATE")
            db.cursor().execute("INSERT INTO t (b, c) VALUES (:b, :c)", {"b": f"new {i}", "c": i})
            db.cursor().execute("COMMIT" if i % 2 else "ROLLBACK")
    with db:
        db.executemany("UPDATE t SET b = ? WHERE c = ?", [("x", 1), ("y", 2)])
    db.execute("DELETE FROM t WHERE c = 3")
    apsw.Connection(":memory:").execute("CREATE TABLE t (a)")
"""


def fill(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c INTEGER)")
        rows = ((f"b{i}", i % 50) for i in range(500))
        db.executemany("INSERT INTO t (b, c) VALUES (?, ?)", rows)


def rows_of(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(ROWS).fetchall()


def recorded(queryprof: Run, program: Path, **options: object) -> tuple[Execution, ...]:
    result = queryprof(
        "run", "--record-workload", "--no-report", "-o", "x.qprof", program, **options
    )
    assert result.returncode == 0, result.stderr
    return read_workload("x.qprof").executions


@pytest.mark.parametrize("driver", ["sqlite3", "pysqlite3", "sqlcipher3", "sqlean", "apsw"])
def test_a_replay_has_the_programs_transactions(
    queryprof: Run, script: Script, tmp_path: Path, driver: str
) -> None:
    """A copy that is played on has what the program's database has."""
    pytest.importorskip(driver)
    database, copy = tmp_path / "t.db", tmp_path / "copy.db"
    fill(database)
    copy.write_bytes(database.read_bytes())
    text = APSW if driver == "apsw" else DB_API.format(driver=driver)
    found = recorded(queryprof, script(textwrap.dedent(text)))
    assert {one.database for one in found} == {str(database), ""}
    wanted = {"BEGIN IMMEDIATE": INSIDE, "COMMIT": OUTSIDE, "DELETE FROM t WHERE c = 3": OUTSIDE}
    if driver != "apsw":
        wanted = {"INSERT INTO t (b, c) VALUES (?, ?)": INSIDE, "CREATE TABLE t (a)": OUTSIDE}
    states = {(one.text, one.state) for one in found if one.text in wanted}
    assert states == set(wanted.items())
    played = play(Order("x.qprof", str(database), str(copy), ""))
    assert not played.left_out
    assert played.executions > 40
    assert rows_of(copy) == rows_of(database)
    result = queryprof("replay", "x.qprof", "--db", database, "--rounds", 1, "--workers", 2)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("connect", ["sqlite3.connect", "apsw.Connection"])
def test_connections_may_be_more_than_files_that_can_be_open(
    queryprof: Run, script: Script, tmp_path: Path, connect: str
) -> None:
    """The garbage collector closes them, unseen; each address belongs to many in turn."""
    module = connect.partition(".")[0]
    pytest.importorskip(module)
    for name in ("t.db", "u.db"):
        fill(tmp_path / name)
    text = f"""
        import gc, random, {module}
        draw = random.Random(1)
        for i in range({3 * DESCRIPTORS}):
            name = draw.choice("tu")
            db = {connect}(name + ".db")
            list(db.execute(f"SELECT a, '{{name}}' FROM t LIMIT 2"))
            del db
            gc.collect()
    """

    def with_few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    found = recorded(queryprof, script(textwrap.dedent(text)), preexec_fn=with_few_files)
    assert len([one for one in found if one.operation == "execute"]) == 3 * DESCRIPTORS
    for one in found:
        if one.text:
            assert one.database == str(tmp_path / ("t.db" if "'t'" in one.text else "u.db"))
    result = queryprof(
        "replay", "x.qprof", "--db", "t.db", "--rounds", 1, preexec_fn=with_few_files
    )
    assert result.returncode == 0, result.stderr
    assert "left out" not in result.stderr
    of_t = sum("'t'" in (one.text or "") for one in found)
    assert f"replayed {of_t} executions" in result.stderr
