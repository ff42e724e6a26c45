"""Workloads of drivers that hide their connections, and of connections that are never closed."""

from __future__ import annotations

import resource
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from replay.recorded_workloads import PROGRAM, recorded
from replay.test_workload import rows_of

from conftest import Run
from queryprof.replay.player import PlayOrder, play_workload
from queryprof.replay.workload import INSIDE, OUTSIDE, read_workload

pytestmark = pytest.mark.once

Script = Callable[[str], Path]
DESCRIPTORS = 64
APSW = """
    import apsw, sys
    db = apsw.Connection(sys.argv[1])
    for i in range(60):
        list(db.execute("SELECT count(*), sum(a) FROM t WHERE c = ?", (i % 7,)))
        if i % 5 == 0:
            db.execute("BEGIN")
            insert = "INSERT INTO t (b, c) VALUES (?, ?)"
            db.cursor().execute(insert, (f"new {i}", i))
            db.cursor().execute("COMMIT" if i % 2 else "ROLLBACK")
    with db:
        db.executemany("UPDATE t SET b = :b WHERE c = :c", [{"b": "x", "c": 1}, {"b": "y", "c": 2}])
    db.execute("DELETE FROM t WHERE c = 3")
    apsw.Connection(":memory:").execute("CREATE TABLE u (a)")
"""


def fill(script: Script, path: Path) -> None:
    subprocess.run([sys.executable, script(textwrap.dedent(PROGRAM)), path, "fill"], check=True)


@pytest.mark.parametrize("driver", ["sqlite3", "pysqlite3", "sqlcipher3", "sqlean", "apsw"])
@pytest.mark.repeats
def test_a_replay_has_the_programs_transactions(
    queryprof: Run, script: Script, tmp_path: Path, driver: str
) -> None:
    """The copy has the same content as the program's database afterwards."""
    pytest.importorskip(driver)
    database, copy = tmp_path / "t.db", tmp_path / "copy.db"
    fill(script, database)
    copy.write_bytes(database.read_bytes())
    text = APSW if driver == "apsw" else PROGRAM.replace("sqlite3", driver)
    recorded(queryprof, script(textwrap.dedent(text)), database)
    found = read_workload("x.qprof").executions
    assert {one.database for one in found} == {str(database), ""}
    wanted = {
        "BEGIN": INSIDE,
        "INSERT INTO t (b, c) VALUES (?, ?)": INSIDE,
        "COMMIT": OUTSIDE,
        "CREATE TABLE u (a)": OUTSIDE,
    }
    states = {(one.text, one.state) for one in found if one.text in wanted}
    assert states == set(wanted.items())
    played = play_workload(PlayOrder("x.qprof", str(database), str(copy), ""))
    assert not played.left_out
    assert played.executions > 90
    assert rows_of(copy) == rows_of(database)
    result = queryprof("lab", "replay", "x.qprof", "--db", database, "--rounds", 1, "--workers", 2)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("connect", ["sqlite3.connect", "apsw.Connection"])
@pytest.mark.repeats
def test_connections_may_be_more_than_files_that_can_be_open(
    queryprof: Run, script: Script, tmp_path: Path, connect: str
) -> None:
    """The garbage collector closes them without a call. Each address is reused many times."""
    module = connect.partition(".")[0]
    pytest.importorskip(module)
    for name in ("t.db", "u.db"):
        fill(script, tmp_path / name)
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

    recorded(queryprof, script(textwrap.dedent(text)), preexec_fn=with_few_files)
    found = read_workload("x.qprof").executions
    assert len([one for one in found if one.operation == "execute"]) == 3 * DESCRIPTORS
    for one in found:
        if one.text:
            assert one.database == str(tmp_path / ("t.db" if "'t'" in one.text else "u.db"))
    result = queryprof(
        "lab", "replay", "x.qprof", "--db", "t.db", "--rounds", 1, preexec_fn=with_few_files
    )
    assert result.returncode == 0, result.stderr
    assert "left out" not in result.stderr
    of_t = sum("'t'" in (one.text or "") for one in found)
    assert f"replayed {of_t} executions" in result.stderr
