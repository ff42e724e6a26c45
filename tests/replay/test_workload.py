"""Workloads: the program's executions, in order and with their values; and replays of them."""

from __future__ import annotations

import ast
import contextlib
import os
import random
import re
import sqlite3
import stat
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from replay.recorded_workloads import recorded

from conftest import Run
from queryprof.core.settings import WORKLOAD_VARIABLE
from queryprof.errors import TraceError
from queryprof.replay.workload import INSIDE, OUTSIDE, UnknownValue, read_workload, workload_prefix

pytestmark = pytest.mark.once

VALUES = """
    import datetime, sqlite3, sys, warnings
    warnings.simplefilter("ignore")
    db = sqlite3.connect(sys.argv[1])
    db.execute("CREATE TABLE t (a, b)")
    rows = [(None, 1), (-2**63, 2**63 - 1), (1.5, float("inf")), ("", "\\u00e9\\U0001f600"), (b"", b"\\0\\xff")]
    for row in rows:
        db.execute("INSERT INTO t VALUES (?, ?)", row)
    db.executemany("INSERT INTO t VALUES (?, ?)", [[1, 2], (3, True)])
    db.executemany("INSERT INTO t VALUES (?, ?)", iter([(1, 2)]))
    db.commit()
    db.execute("SELECT :x, :y", {"x": 1, "y": "two"}).fetchall()
    db.execute("INSERT INTO t VALUES (?, 1)", (datetime.date(2020, 1, 1),))
    db.rollback()
    with db:
        db.execute("UPDATE t SET a = 7")
    try:
        db.execute("SELECT nothing")
    except sqlite3.Error:
        pass
    db.executescript("CREATE TABLE u (a); INSERT INTO u VALUES (1);")
    db.close()
    sqlite3.connect(":memory:").execute("SELECT 1")
"""


def rows_of(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT * FROM t ORDER BY a").fetchall()


def test_a_name_that_is_used_again_has_the_last_workload(
    queryprof: Run, script: Callable[[str], Path]
) -> None:
    for number in (1, 2):
        program = script(f"import sqlite3\nsqlite3.connect('t.db').execute('SELECT {number}')")
        recorded(queryprof, program)
    (path,) = Path().glob("x.qprof-workload-*")
    assert b"SELECT 2" in path.read_bytes()


def test_all_values_are_kept(queryprof: Run, script: Callable[[str], Path], tmp_path: Path) -> None:
    recorded(queryprof, script(textwrap.dedent(VALUES)), tmp_path / "t.db")
    (path,) = tmp_path.glob("x.qprof-workload-*")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    workload = read_workload("x.qprof")
    assert not workload.is_cut
    found = workload.executions
    inserts = [one for one in found if one.text == "INSERT INTO t VALUES (?, ?)"]
    assert [one.parameters for one in inserts[:5]] == [
        (None, 1),
        (-(2**63), 2**63 - 1),
        (1.5, float("inf")),
        ("", "\u00e9\U0001f600"),
        (b"", b"\0\xff"),
    ]
    assert inserts[5].parameters == [(1, 2), (3, 1)]
    assert inserts[6].parameters is UnknownValue
    assert not inserts[6].is_known
    (named,) = [one for one in found if one.text == "SELECT :x, :y"]
    assert named.parameters == {"x": 1, "y": "two"}
    (adapted,) = [one for one in found if one.text == "INSERT INTO t VALUES (?, 1)"]
    assert adapted.parameters == (UnknownValue,)
    assert [one.failed for one in found if one.text == "SELECT nothing"] == [True]
    assert {one.database for one in found if one.text and "FROM" not in one.text} == {
        str(tmp_path / "t.db"),
        "",
    }
    states = [
        (one.operation, one.state) for one in found if one.operation in ("commit", "rollback")
    ]
    assert states == [("commit", OUTSIDE), ("rollback", OUTSIDE), ("commit", OUTSIDE)]
    assert inserts[0].state == INSIDE
    starts = [one.start_unix_ns for one in found]
    assert starts == sorted(starts)
    source = Path(inserts[0].path[0].file).read_text().splitlines()
    for one in (*inserts, named, adapted):
        assert one.path[0].function == "<module>"
        line = source[one.path[0].line - 1]
        assert "execute" in line, line
    assert "SELECT :x, :y" in source[named.path[0].line - 1]


@pytest.mark.slow
def test_how_many_rows_were_read_is_kept(
    queryprof: Run, script: Callable[[str], Path], tmp_path: Path
) -> None:
    """This includes many interleaved executions. A replay reads no more rows."""
    program = script(
        textwrap.dedent("""
        import random, sqlite3, sys
        db, draw, read = sqlite3.connect("t.db"), random.Random(1), {}
        endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        cursors = {}
        for number in range(3000):
            key = draw.choice([number, *cursors])
            if key not in cursors:
                cursors[key] = db.execute(f"{endless} SELECT i, {key} FROM n")
                read[key] = 0
            action = draw.randrange(4)
            if action == 0:
                cursors[key].fetchone()
                read[key] += 1
            elif action == 1:
                read[key] += len(cursors[key].fetchmany(draw.randrange(1, 9)))
            elif action == 2:
                read[key] += len([row for row, _ in zip(cursors[key], range(3))]) + 1
            else:
                del cursors[key]
        db.execute("SELECT 1 WHERE 0").fetchall()
        print(read)
        """)
    )
    result = queryprof("run", "--record-workload", "--no-report", "-o", "x.qprof", program)
    assert result.returncode == 0, result.stderr
    found = [one for one in read_workload("x.qprof").executions if one.operation == "execute"]
    assert found[-1].rows == 0
    numbers = [re.search(r"SELECT i, (\d+)", one.text or "") for one in found[:-1]]
    assert {
        int(number[1]): one.rows for number, one in zip(numbers, found[:-1], strict=True) if number
    } == (ast.literal_eval(result.stdout))
    assert queryprof("lab", "replay", "x.qprof", "--db", "t.db", "--rounds", 1).returncode == 0


def test_forked_children_have_files_of_their_own(
    queryprof: Run, script: Callable[[str], Path], tmp_path: Path
) -> None:
    program = script(
        textwrap.dedent("""
        import os, sqlite3
        sqlite3.connect("p.db").execute("SELECT 'parent'")
        for number in range(3):
            if not os.fork():
                sqlite3.connect("c.db").execute(f"SELECT 'child {number}'")
                os._exit(0) if number == 0 else exit()
            os.wait()
        """)
    )
    recorded(queryprof, program)
    found = [one.text for one in read_workload("x.qprof").executions if one.text]
    assert sorted(found) == ["SELECT 'child 1'", "SELECT 'child 2'", "SELECT 'parent'"]


def test_it_is_bounded(queryprof: Run, script: Callable[[str], Path]) -> None:
    program = script(
        textwrap.dedent("""
        import sqlite3
        db = sqlite3.connect(":memory:")
        for number in range(200):
            db.execute("SELECT length(?)", (bytes(20_000),)).fetchall()
        """)
    )
    limited = {WORKLOAD_VARIABLE: f"1000000:{workload_prefix(os.path.abspath('x.qprof'))}"}
    queryprof("run", "--no-report", "-o", "x.qprof", program, env=limited)
    workload = read_workload("x.qprof")
    assert workload.is_cut
    assert 40 <= len(workload.executions) <= 60


def test_a_full_disk_is_not_the_programs(script: Callable[[str], Path], queryprof: Run) -> None:
    program = script(
        textwrap.dedent("""
        import resource, signal, sqlite3
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        db = sqlite3.connect(":memory:")
        for number in range(200):
            db.execute("SELECT length(?)", (bytes(20_000),)).fetchall()
        print("done")
        """)
    )
    result = queryprof("run", "--record-workload", "--no-report", "-o", "x.qprof", program)
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert len(read_workload("x.qprof").executions) < 20


def test_any_bytes_are_read_or_refused(
    queryprof: Run, script: Callable[[str], Path], tmp_path: Path
) -> None:
    recorded(queryprof, script(textwrap.dedent(VALUES)), tmp_path / "t.db")
    (path,) = tmp_path.glob("x.qprof-workload-*")
    content, draw = path.read_bytes(), random.Random(1)
    for _ in range(300):
        damaged = bytearray(content[: draw.randrange(len(content))])
        for _ in range(draw.randrange(4)):
            damaged[draw.randrange(max(1, len(damaged) - 1)) if damaged else 0 :] = draw.randbytes(
                9
            )
        path.write_bytes(damaged)
        with contextlib.suppress(TraceError):
            read_workload("x.qprof")
    path.unlink()
    with pytest.raises(TraceError, match="--record-workload"):
        read_workload("x.qprof")


@pytest.mark.slow
def test_a_replay_has_the_programs_transactions(
    queryprof: Run, before: Path, tmp_path: Path
) -> None:
    """The copy has the same content as the program's database afterwards."""
    from queryprof.replay.player import PlayOrder, play_workload

    copy = tmp_path / "copy.db"
    copy.write_bytes(before.read_bytes())
    played = play_workload(PlayOrder("x.qprof", str(tmp_path / "t.db"), str(copy), ""))
    assert rows_of(copy) == rows_of(tmp_path / "t.db")
    assert played.executions > 120
    assert not played.left_out
    state = (before.read_bytes(), before.stat().st_mtime_ns)
    result = queryprof("lab", "replay", "x.qprof", "--db", before, "--rounds", 2)
    assert result.returncode == 0, result.stderr
    assert "rows: equal in all rounds" in result.stderr
    assert (before.read_bytes(), before.stat().st_mtime_ns) == state


def test_no_other_file_is_written(
    queryprof: Run, script: Callable[[str], Path], tmp_path: Path
) -> None:
    program = script(
        "import sqlite3\n"
        "db = sqlite3.connect('t.db', isolation_level=None)\n"
        "db.execute('CREATE TABLE t (a)')\n"
        "db.execute(\"/* x */ ATTACH 'other.db' AS other\")\n"
        "db.execute('CREATE TABLE other.u (a)')\n"
        "db.execute('DETACH other')\n"
        "db.executescript(\"SELECT 1; VACUUM main INTO 'third.db'\")\n"
    )
    recorded(queryprof, program)
    for name in ("t.db", "other.db", "third.db"):
        (tmp_path / name).unlink()
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("PRAGMA user_version = 1")
    result = queryprof("lab", "replay", "x.qprof", "--db", "t.db", "--rounds", 1)
    assert result.returncode == 0, result.stderr
    assert (
        "2 executions skipped: the statement is refused in a replay: ATTACH or VACUUM INTO"
        in result.stderr
    )
    assert not (tmp_path / "other.db").exists()
    assert not (tmp_path / "third.db").exists()


@pytest.mark.slow
def test_two_settings_are_compared(queryprof: Run, before: Path) -> None:
    result = queryprof(
        "lab",
        "replay",
        "x.qprof",
        "--db",
        before,
        "--index",
        "CREATE INDEX i ON t (c)",
        "--pragma",
        "cache_size=-8000",
        "--fail-on",
        "none",
    )
    assert result.returncode == 0, result.stderr
    assert "plan now  SEARCH t USING INDEX i (c=?)" in result.stdout
    assert "rows: equal in all rounds" in result.stderr
