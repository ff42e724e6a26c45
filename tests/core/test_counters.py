"""SQLite's own counters: the same in every run, and unknown instead of wrong."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from conftest import Run, only
from queryprof.collect.reader import read_profile
from queryprof.core import _core

PROGRAM = """
import sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
with connection:
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, i % 97) for i in range(2000)])
connection.create_function("twice", 1, lambda x: 2 * x)
for i in range(50):
    connection.execute("SELECT b FROM t WHERE a = ?", (i,)).fetchone()
    connection.execute("SELECT a FROM t WHERE b = ?", (i,)).fetchone()   # left unfinished
    connection.execute("SELECT twice(a) FROM t WHERE b = ? ORDER BY -a", (i,)).fetchall()
connection.executescript("UPDATE t SET b = b + 1; DELETE FROM t WHERE a > 1900;")
connection.close()
"""


@pytest.mark.slow
def test_vm_steps_are_equal_in_ten_runs(queryprof: Run, script: Callable[[str], Path]) -> None:
    """The same program on the same database takes the same VM steps, for every statement."""
    path = script(PROGRAM)
    figures = []
    for number in range(10):
        result = queryprof("run", "--no-report", "-o", f"{number}.qprof", path)
        assert result.returncode == 0, result.stderr
        steps: dict[tuple[str, str], tuple[int, ...]] = {}
        for a in read_profile(f"{number}.qprof").aggregates:
            c = a
            old = steps.get((a.statement, a.operation), (0, 0, 0, 0, 0))
            new = (c.vm_steps, c.full_scan_steps, c.sorts, c.counted, a.count)
            steps[a.statement, a.operation] = tuple(x + y for x, y in zip(old, new, strict=True))
        figures.append(steps)
    assert all(figure == figures[0] for figure in figures)
    searched = figures[0]["SELECT b FROM t WHERE a = ?", "execute"]
    scanned = figures[0]["SELECT twice(a) FROM t WHERE b = ? ORDER BY - a", "execute"]
    assert searched[1] == 0
    assert scanned[1] == 50 * 1999
    assert scanned[2] == 50
    assert all(
        figure[3] == figure[4] for key, figure in figures[0].items() if key[1].startswith("execute")
    )


def test_executemany_counts_as_sqlite_does() -> None:
    """The steps of an executemany are those of its rows executed one by one."""
    steps = []
    for rows_at_once in (True, False):
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("CREATE TABLE t (a)")
        connection.execute("BEGIN")
        rows = [(i,) for i in range(100)]
        with queryprof.profile() as recording:
            if rows_at_once:
                connection.executemany("INSERT INTO t VALUES (?)", rows)
            else:
                for row in rows:
                    connection.execute("INSERT INTO t VALUES (?)", row)
        steps.append(sum(a.vm_steps for a in recording.profile.aggregates))
        connection.close()
    assert steps[0] == steps[1] > 100


def test_connections_open_before_are_counted_from_the_first_statement() -> None:
    """A connection that was open before install also has counters."""
    connection = sqlite3.connect(":memory:")
    with queryprof.profile() as recording:
        connection.execute("SELECT 1").fetchall()
    connection.close()
    assert only(recording.profile, "SELECT ?").counted == 1


def test_a_users_trace_callback_wins() -> None:
    """A callback set by the program keeps working. Counters are then unknown, never 0."""
    seen: list[str] = []
    with queryprof.profile() as recording:
        connection = sqlite3.connect(":memory:")
        connection.set_trace_callback(seen.append)
        connection.execute("SELECT 1").fetchall()
        connection.close()
    assert seen == ["SELECT 1"]
    assert only(recording.profile, "SELECT ?").counted == 0


def test_a_users_earlier_trace_callback_is_not_displaced() -> None:
    """A callback set before install is never replaced."""
    seen: list[str] = []
    connection = sqlite3.connect(":memory:")
    connection.set_trace_callback(seen.append)
    with queryprof.profile() as recording:
        connection.execute("SELECT 1").fetchall()
    connection.close()
    assert seen == ["SELECT 1"]
    assert only(recording.profile, "SELECT ?").counted == 0


def test_a_callback_that_comes_later_is_not_displaced_by_a_commit_or_a_script() -> None:
    """COMMIT and scripts are counted in another way, and the program's callback is kept there
    too.
    """
    seen: list[str] = []
    with queryprof.profile() as recording:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (a)")
        connection.set_trace_callback(seen.append)
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        connection.cursor().executescript("SELECT 1; SELECT 2")
        connection.close()
    assert "COMMIT" in seen
    assert [sql.strip("; ") for sql in seen if "SELECT" in sql] == ["SELECT 1", "SELECT 2"]
    commit = next(a for a in recording.profile.aggregates if a.operation == "commit")
    assert (commit.count, commit.counted) == (1, 0)


def test_a_displaced_connection_may_go_unseen() -> None:
    """Only the program's callback sees the statements. Earlier counts are kept."""
    with queryprof.profile() as recording:
        for _ in range(200):
            connection = sqlite3.connect(":memory:")
            connection.execute("SELECT 1").fetchall()
            connection.set_trace_callback(lambda sql: None)
            connection.close()
            del connection
    assert only(recording.profile, "SELECT ?").counted == 200


@pytest.mark.parametrize("cached_statements", [0, 5, 128])
@pytest.mark.repeats
def test_statements_that_come_and_go_are_counted(cached_statements: int) -> None:
    """Whatever the driver's statement cache drops, each execution's steps count once."""
    connection = sqlite3.connect(":memory:", cached_statements=cached_statements)
    rounds, texts = 7, 150
    with queryprof.profile() as recording:
        for _ in range(rounds):
            for i in range(texts):
                connection.execute(f"SELECT 1 AS a{i}").fetchall()
                connection.execute(f"SELECT 1 AS a{i}").fetchone()  # another call site
    connection.close()
    aggregates = [a for a in recording.profile.aggregates if a.operation == "execute"]
    assert sum(a.counted for a in aggregates) == 2 * rounds * texts
    assert {(a.count, a.counted) for a in aggregates} == {(rounds, rounds)}
    (steps,) = {a.vm_steps for a in aggregates}
    assert steps == rounds * (steps // rounds) > 0


def test_a_statement_left_unfinished_is_counted() -> None:
    """The work of an abandoned iteration is read when its statement is used again or freed."""
    with queryprof.profile() as recording:
        connection = sqlite3.connect(":memory:")
        for _ in range(3):
            cursor = connection.execute("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3")
            next(cursor)
            del cursor
        connection.close()
    select = only(recording.profile, "SELECT ? UNION ALL SELECT ? UNION ALL SELECT ?")
    assert select.counted == select.count == 3
    assert select.vm_steps % 3 == 0


def test_a_begin_of_the_drivers_own_is_not_the_statements() -> None:
    """An INSERT takes the same steps whether or not it opens the transaction."""
    with queryprof.profile() as recording:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (a)")
        for _ in range(2):
            connection.execute("INSERT INTO t VALUES (1)")  # begins a transaction
        connection.execute("INSERT INTO t VALUES (1)")  # does not begin one
        connection.close()
    first, second = sorted(
        (a.vm_steps / a.count)
        for a in recording.profile.aggregates
        if a.statement.startswith("INSERT")
    )
    assert first == second > 0


def test_closing_with_a_statement_pending_is_safe() -> None:
    """SQLite keeps such a connection alive, and its counters are read at the close."""
    with queryprof.profile() as recording:
        for _ in range(100):
            connection = sqlite3.connect(":memory:")
            cursor = connection.execute("SELECT 1 UNION ALL SELECT 2")
            connection.close()
            del cursor
    select = only(recording.profile, "SELECT ? UNION ALL SELECT ?")
    assert select.counted == select.count == 100


def test_page_fetches_are_sampled() -> None:
    """About 1 in 16 executions has its page fetches counted, and they are about right."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(5000)])
    with queryprof.profile() as recording:
        for i in range(2000):
            connection.execute("SELECT a FROM t WHERE a = ?", (i,)).fetchall()
    connection.close()
    counters = only(recording.profile, "SELECT a FROM t WHERE a = ?")
    assert 60 <= counters.page_fetch_samples <= 220
    assert 1 <= counters.page_fetches / counters.page_fetch_samples <= 4


@pytest.mark.once
def test_the_first_execution_has_its_page_fetches_counted() -> None:
    """It does not depend on chance: among few executions, none might be sampled."""
    for number in range(20):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
            with queryprof.profile() as recording:
                connection.execute(f"SELECT a, {number} FROM t").fetchall()
        assert only(recording.profile, "SELECT a, ? FROM t").page_fetch_samples == 1


def test_scripts_and_commits_of_threads_that_share_a_connection(tmp_path: Path) -> None:
    """A statement of a script ends with its call, whichever thread commits meanwhile. It is not
    read with the statements in progress.
    """
    program = tmp_path / "program.py"
    program.write_text(
        "import sqlite3, sys, threading, queryprof\n"
        "from queryprof.recorder.session import session\n"
        "sys.setswitchinterval(1e-5)\n"
        "queryprof.install('x.qprof')\n"
        "c = sqlite3.connect(':memory:', check_same_thread=False)\n"
        "c.execute('CREATE TABLE t (a)')\n"
        "ended = threading.Event()\n"
        "def scripts():\n"
        "    sql = ''.join(f'INSERT INTO t VALUES ({i}); SELECT {i} AS x;' for i in range(30))\n"
        "    for _ in range(60):\n"
        "        try: c.executescript(sql)\n"
        "        except sqlite3.Error: pass\n"
        "    ended.set()\n"
        "def again(function):\n"
        "    while not ended.is_set():\n"
        "        try: function()\n"
        "        except sqlite3.Error: pass\n"
        "threads = [threading.Thread(target=again, args=(f,)) for f in (c.commit, session.write_pending)]\n"
        "threads.append(threading.Thread(target=scripts))\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "print('done')\n"
    )
    result = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=100, check=False
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


@pytest.mark.parametrize("address", ["file:memory?mode=memory&cache=shared", "file:x.db"])
@pytest.mark.repeats
def test_threads_never_deadlock(address: str, tmp_path: Path) -> None:
    """User functions need the GIL while SQLite holds its mutexes: counting takes neither."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sqlite3, threading, queryprof\n"
        f"address = {address!r}\n"
        "queryprof.install('x.qprof')\n"
        "def work(connection):\n"
        "    for i in range(300):\n"
        "        connection.execute('SELECT f(?)', (i,)).fetchall()\n"
        "        connection.executemany('INSERT INTO u VALUES (f(?))', [(j,) for j in range(12)])\n"
        "        connection.rollback()\n"
        "def connect():\n"
        "    c = sqlite3.connect(address, uri=True, check_same_thread=False, timeout=60)\n"
        "    c.create_function('f', 1, lambda x: x)\n"
        "    c.execute('CREATE TEMP TABLE u (a)')\n"
        "    return c\n"
        "connections = [connect() for _ in range(4)]\n"
        "threads = [threading.Thread(target=work, args=(c,)) for c in connections]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "print('done')\n"
    )
    result = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=100, check=False
    )
    assert result.stdout == "done\n", result.stderr


def test_steps_of_an_execution_are_counted_whenever_they_are_read() -> None:
    """Steps after a reading in the middle of an execution count for that execution."""

    def vm_steps(flush: Callable[[], None]) -> int:
        with queryprof.profile() as recording, closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE t (a)")
            connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100)])
            for _ in range(8):
                cursor = connection.execute("SELECT a FROM t")
                cursor.fetchmany(50)
                flush()
                cursor.fetchall()
        return sum(a.vm_steps for a in recording.profile.aggregates if "SELECT" in a.statement)

    assert vm_steps(_core.flush) == vm_steps(lambda: None) > 8 * 100


@pytest.mark.parametrize("cursors", [10, 65, 300, 3000])
@pytest.mark.repeats
def test_steps_of_many_open_cursors_are_exact(cursors: int) -> None:
    """Each cursor has as many steps as a single cursor, whether it is fetched to its end or not."""
    counting = (
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100) SELECT x"
        " FROM n"
    )
    steps = []
    for number in (1, cursors):
        connection = sqlite3.connect(":memory:")
        with queryprof.profile() as recording:
            opened = [connection.execute(counting) for _ in range(number)]
            for cursor in opened:
                next(cursor)
            for cursor in opened:
                assert len(cursor.fetchall()) == 99
        connection.close()
        found = [a for a in recording.profile.aggregates if a.operation == "execute"]
        assert [(a.count, a.counted) for a in found] == [(number, number)]
        steps.append(found[0].vm_steps)
    assert steps[1] == cursors * steps[0]


@pytest.mark.slow
def test_steps_of_cursors_that_are_left_open_are_the_same_in_every_run(
    queryprof: Run, script: Callable[[str], Path]
) -> None:
    path = script("""
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE t (a)")
db.executemany("INSERT INTO t VALUES (?)", ((i,) for i in range(1000)))
def rows(least):
    yield from db.execute("SELECT a FROM t WHERE a >= ?", (least,))
generators = [rows(i) for i in range(60)]
for one in generators: next(one)
for one in generators[:3]: list(one)
""")
    found = set()
    for _ in range(3):
        assert queryprof("run", "--no-report", "-o", "x.qprof", path).returncode == 0
        found.add(sum(a.vm_steps for a in read_profile("x.qprof").aggregates))
    assert len(found) == 1


@pytest.mark.slow
def test_counters_that_found_no_place_are_told() -> None:
    """A connection is closed with more open statements than their counters have places."""
    with queryprof.profile() as p:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        for pause_s in (0.04, 0.07, 0.13, 0.26, 0.51):  # the next look at open statements is in 1 s
            time.sleep(pause_s)
            connection.execute("SELECT 1").fetchall()
        cursors = [connection.execute(f"SELECT a AS a{number} FROM t") for number in range(600)]
        connection.close()
    assert len(cursors) == 600
    ended = [one for one in p.profile.aggregates if one.operation in ("execute", "executemany")]
    unknown = sum(one.count - one.counted for one in ended)
    assert unknown > 0
    assert p.profile.total("lost_counters") == unknown
