"""APSW: each call is measured once, with the counters of its own SQLite, and nothing changes."""

from __future__ import annotations

import random
import sqlite3
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

import queryprof
from conftest import by_operation, only
from queryprof.hooks.drivers.own_sqlite import APSW_TYPES
from queryprof.model import Profile


def test_apsw() -> None:
    """All calls that reach the database are measured, with SQLite's own counters."""
    apsw = pytest.importorskip("apsw")
    with queryprof.profile() as recording:
        connection = apsw.Connection(":memory:")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)")
        with connection:
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, n) for n in range(100)])
        cursor = connection.cursor()
        for number in range(50):
            assert cursor.execute("SELECT x FROM t WHERE id = ?", (number,)).fetchone() == (number,)
        assert len(list(connection.execute("SELECT x FROM t WHERE x > ? ORDER BY -x", (9,)))) == 90
        assert len(cursor.execute("SELECT id FROM t; SELECT x FROM t").fetchall()) == 200
        with pytest.raises(apsw.SQLError):
            cursor.execute("SELECT * FROM missing")
        with pytest.raises(apsw.ConstraintError), connection:
            connection.execute("INSERT INTO t VALUES (1, 1)")
        other = apsw.Connection("")
        with other.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(1)
        connection.execute("CREATE TABLE b (b)")
        connection.execute("INSERT INTO b VALUES (zeroblob(10))")
        blob = connection.blob_open("main", "b", "b", 1, True)
        blob.write(b"hi")
        blob.seek(0)
        assert blob.read(2) == b"hi"
        blob.close()
        connection.close()
        other.close()
    files = {a.path[0].file for a in recording.profile.aggregates}
    assert files == {__file__}
    found = by_operation(recording.profile)
    steps = found.pop(("(backup)", "backup"))
    assert steps >= 3
    assert found == {
        ("(connect)", "connect"): 2,
        ("CREATE TABLE t(id INTEGER PRIMARY KEY, x)", "execute"): 1,
        ("BEGIN", "begin"): 2,
        ("COMMIT", "commit"): 1,
        ("ROLLBACK", "rollback"): 1,
        ("INSERT INTO t VALUES (?, ?)", "executemany"): 1,
        ("INSERT INTO t VALUES (?, ?)", "execute"): 1,
        ("SELECT x FROM t WHERE id = ?", "execute"): 50,
        ("SELECT x FROM t WHERE id = ?", "fetchone"): 50,
        ("SELECT x FROM t WHERE x > ? ORDER BY - x", "execute"): 1,
        ("SELECT x FROM t WHERE x > ? ORDER BY - x", "next"): 91,
        # Its second statement was not read when the execute had ended.
        ("SELECT ? FROM ?", "execute"): 1,
        ("SELECT ? FROM ?", "fetchall"): 1,
        ("SELECT * FROM missing", "execute"): 1,
        ("CREATE TABLE b(b)", "execute"): 1,
        ("INSERT INTO b VALUES (zeroblob(?))", "execute"): 1,
        ("(blob)", "blob open"): 1,
        ("(blob)", "blob write"): 1,
        ("(blob)", "blob read"): 1,
        ("(close)", "close"): 2,
    }
    select = only(recording.profile, "SELECT x FROM t WHERE id = ?")
    assert (select.counted, select.full_scan_steps) == (50, 0)
    assert select.vm_steps == 50 * (select.vm_steps // 50) > 0
    sort = only(recording.profile, "SELECT x FROM t WHERE x > ? ORDER BY - x")
    assert (sort.counted, sort.sorts) == (1, 1)
    assert sort.full_scan_steps == 99
    rows = by_operation(recording.profile, "rows")
    assert rows["SELECT ? FROM ?", "fetchall"] == 200
    assert rows["SELECT x FROM t WHERE x > ? ORDER BY - x", "next"] == 90
    assert {(e.statement, e.exception) for e in recording.profile.errors} == {
        ("SELECT * FROM missing", "apsw.SQLError"),
        ("INSERT INTO t VALUES (?, ?)", "apsw.ConstraintError"),
    }


@pytest.mark.parametrize("cached", [0, 1, 100])
@pytest.mark.repeats
def test_apsw_counts_what_each_run_does(cached: int) -> None:
    """The number of its runs identifies a repeated statement, because another one may have its
    address. SQLite's counters are the same each time.
    """
    apsw = pytest.importorskip("apsw")
    statements = {
        "SELECT x FROM t WHERE id = ?": lambda: (7,),
        "SELECT x FROM t WHERE x > ? ORDER BY -x": lambda: (90,),
        "SELECT count(*) FROM t WHERE x <> ?": lambda: (1,),
        "UPDATE t SET x = x WHERE id < ?": lambda: (9,),
    }
    chance = random.Random(cached)

    def figures(times: int) -> dict[str, tuple[int, ...]]:
        with queryprof.profile() as recording:
            connection = apsw.Connection(":memory:", statementcachesize=cached)
            connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, n) for n in range(100)])
            cursor = connection.cursor()
            order = [sql for sql in statements for _ in range(times)]
            chance.shuffle(order)
            for sql in order:
                if chance.random() < 0.5:
                    cursor.execute(sql, statements[sql]()).fetchall()
                else:
                    cursor.execute(sql, statements[sql]()).fetchall()
        counted: dict[str, tuple[int, ...]] = {}
        for aggregate in recording.profile.aggregates:
            if aggregate.statement in statements and aggregate.operation == "execute":
                c = aggregate
                row = (c.counted, c.vm_steps, c.full_scan_steps, c.sorts, c.automatic_indexes)
                known = counted.get(aggregate.statement, (0,) * len(row))
                counted[aggregate.statement] = tuple(a + b for a, b in zip(known, row, strict=True))
        return counted

    once, often = figures(1), figures(100)
    assert {row[0] for row in once.values()} == {1}
    assert often == {sql: tuple(100 * figure for figure in row) for sql, row in once.items()}


def vm_steps(profile: Profile) -> dict[str, tuple[int, int]]:
    """Return (VM steps, number of counted executions) by statement."""
    figures: dict[str, tuple[int, int]] = {}
    for a in profile.aggregates:
        steps, counted = figures.get(a.statement, (0, 0))
        figures[a.statement] = (steps + a.vm_steps, counted + a.counted)
    return figures


def test_apsw_statements_inside_others() -> None:
    """A statement inside another one is not confused with an earlier one at the same address or
    with the same text.
    """
    apsw = pytest.importorskip("apsw")
    query = "SELECT count(*) FROM t WHERE a % 3 = 1"

    def of_query(further: int) -> tuple[int, int]:
        with queryprof.profile() as recording:
            connection = apsw.Connection(":memory:")
            connection.execute("CREATE TABLE t (a)")
            connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(1000)])
            connection.execute(query).fetchall()
            for _ in range(further):
                connection.execute(f"SELECT 1; {query}").fetchall()
        return next(
            f for s, f in vm_steps(recording.profile).items() if s.startswith("SELECT count")
        )

    assert of_query(0) == of_query(5)
    with queryprof.profile() as recording:
        connection = apsw.Connection(":memory:", statementcachesize=0)
        for number in range(40):
            connection.execute(query.replace("FROM t", "FROM (SELECT 1 AS a)") + f" OR {number}")
            connection.execute(f"CREATE VIRTUAL TABLE f{number} USING fts5(x)")
            connection.execute(f"INSERT INTO f{number} VALUES ('hello')")
            connection.execute(f"SELECT * FROM f{number} WHERE f{number} MATCH 'hello'").fetchall()
    assert max(steps for steps, _ in vm_steps(recording.profile).values()) < 100_000


def test_apsw_a_long_statement_is_not_pushed_out() -> None:
    """Hundreds of other statements begin and end meanwhile."""
    apsw = pytest.importorskip("apsw")

    def of_outer(texts: int) -> tuple[int, int]:
        with queryprof.profile() as recording:
            connection = apsw.Connection(":memory:")
            connection.execute("CREATE TABLE t (a)")
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(400)])
            connection.execute("COMMIT")
            for (i,) in connection.execute("SELECT a FROM t WHERE a >= 0 ORDER BY rowid"):
                connection.execute(f"SELECT a FROM t LIMIT 1 -- {'p' * (i % texts)}").fetchall()
        return vm_steps(recording.profile)["SELECT a FROM t WHERE a >= ? ORDER BY rowid"]

    assert of_outer(1) == of_outer(400)


def test_apsw_in_threads_beside_sqlite3() -> None:
    """Both drivers run at once in many threads: each statement has the counters of its
    own SQLite.
    """
    apsw = pytest.importorskip("apsw")

    def ask(driver: types.ModuleType, number: int) -> None:
        connection = (apsw.Connection if driver is apsw else sqlite3.connect)(":memory:")
        connection.execute("CREATE TABLE t (x)")
        for n in range(20):
            connection.execute("INSERT INTO t VALUES (?)", (n,))
        sql = f"SELECT x, '{driver.__name__}' AS {driver.__name__} FROM t WHERE x < ?"
        for _ in range(30):
            rows = list(connection.execute(sql, (number,)))
            assert len(rows) == number
        connection.close()

    with queryprof.profile() as recording, ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(ask, driver, n % 20) for n in range(40) for driver in (apsw, sqlite3)]
        for job in jobs:
            job.result()
    for driver in ("apsw", "sqlite3"):
        found = [a for a in recording.profile.aggregates if f"AS {driver}" in a.statement]
        began = [a for a in found if a.operation == "execute"]
        assert sum(a.count for a in began) == 40 * 30
        assert sum(a.counted for a in began) == 40 * 30
        assert sum(a.full_scan_steps for a in began) == 40 * 30 * 19
        assert sum(a.rows for a in found) == 30 * sum(n % 20 for n in range(40))


def test_get_of_a_cursor_is_a_fetch() -> None:
    """It reads all rows, and has their number, their time and their counters."""
    apsw = pytest.importorskip("apsw")
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(1000)))

    def read(texts: dict[str, object]) -> None:
        for text, expected in texts.items():
            assert connection.execute(text).get == expected
        with pytest.raises(apsw.SQLError, match="overflow"):
            connection.execute("SELECT abs(-9223372036854775808)").get  # noqa: B018

    texts: dict[str, object] = {
        "SELECT x FROM t": list(range(1000)),
        "SELECT x, x FROM t LIMIT 1": (0, 0),
        "SELECT x FROM t LIMIT 0": None,
        "SELECT count(*) FROM t": 1000,
    }
    with queryprof.profile() as recording:
        read(texts)
    read(texts)
    fetches = [a for a in recording.profile.aggregates if a.operation == "fetchall"]
    rows = {a.statement: (a.count, a.rows, a.errors) for a in fetches}
    assert rows == {
        "SELECT x FROM t": (1, 1000, 0),
        "SELECT x, x FROM t LIMIT ?": (1, 1, 0),
        "SELECT x FROM t LIMIT ?": (1, 0, 0),
        "SELECT count(*) FROM t": (1, 1, 0),
    }


def test_apsw_is_left_as_it_was() -> None:
    """Types, functions, hooks and the loading of extensions are unchanged."""
    apsw = pytest.importorskip("apsw")
    before = {
        (name, method): getattr(apsw, name).__dict__.get(method)
        for name, methods in APSW_TYPES.items()
        for method in methods
    }
    hooks = list(apsw.connection_hooks)
    events = []
    with queryprof.profile():
        connection = apsw.Connection(":memory:")
        with pytest.raises(apsw.Error):
            connection.load_extension("nowhere")
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, events.append)  # ours is displaced
        connection.execute("SELECT 1").fetchall()
        assert len(events) == 1
    assert apsw.connection_hooks == hooks
    for (name, method), function in before.items():
        assert getattr(apsw, name).__dict__.get(method) is function
    connection.execute("SELECT 2").fetchall()
    assert len(events) == 2
