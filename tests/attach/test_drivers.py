"""Drivers besides sqlite3: each call measured once, with the line that asked; nothing changed."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import sqlite3
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgresql import binaries, server

import queryprof
from conftest import Run, by_operation, only
from queryprof.core import _core
from queryprof.hooks.apsw_driver import METHODS as APSW_METHODS
from queryprof.hooks.driver import Driver
from queryprof.hooks.drivers import DUCKDB, PSYCOPG
from queryprof.model import Profile

HERE = Path(__file__).name


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not binaries():
        pytest.skip("PostgreSQL's server is not installed")
    with server() as address:
        yield address


def calls(profile: Profile) -> Counter[tuple[str, str]]:
    """Calls by (statement, operation); every one of them was made in this file."""
    for aggregate in profile.aggregates:
        assert Path(aggregate.path[0].file).name == HERE, aggregate
    return by_operation(profile)


def test_apsw() -> None:
    """Every way to the database, with SQLite's own counters."""
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
    found = calls(recording.profile)
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
        ("SELECT id FROM t; SELECT x FROM t", "execute"): 1,
        ("SELECT id FROM t; SELECT x FROM t", "fetchall"): 1,
        ("SELECT * FROM missing", "execute"): 1,
        ("CREATE TABLE b(b)", "execute"): 1,
        ("INSERT INTO b VALUES (zeroblob(?))", "execute"): 1,
        ("(blob)", "blob open"): 1,
        ("(blob)", "blob write"): 1,
        ("(blob)", "blob read"): 1,
        ("(close)", "close"): 2,
    }
    select = only(recording.profile, "SELECT x FROM t WHERE id = ?")
    assert (select.counters.counted, select.counters.full_scan_steps) == (50, 0)
    assert select.counters.vm_steps == 50 * (select.counters.vm_steps // 50) > 0
    sort = only(recording.profile, "SELECT x FROM t WHERE x > ? ORDER BY - x")
    assert (sort.counters.counted, sort.counters.sorts) == (1, 1)
    assert sort.counters.full_scan_steps == 99
    rows = by_operation(recording.profile, "rows")
    assert rows["SELECT id FROM t; SELECT x FROM t", "fetchall"] == 200
    assert rows["SELECT x FROM t WHERE x > ? ORDER BY - x", "next"] == 90
    assert {(e.statement, e.exception) for e in recording.profile.errors} == {
        ("SELECT * FROM missing", "apsw.SQLError"),
        ("INSERT INTO t VALUES (?, ?)", "apsw.ConstraintError"),
    }


@pytest.mark.parametrize("cached", [0, 1, 100])
def test_apsw_counts_what_each_run_does(cached: int) -> None:
    """A statement that runs again is known by the number of its runs; another one may stand at its address.
    What SQLite counts of each is the same every time.
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
                c = aggregate.counters
                row = (c.counted, c.vm_steps, c.full_scan_steps, c.sorts, c.automatic_indexes)
                known = counted.get(aggregate.statement, (0,) * len(row))
                counted[aggregate.statement] = tuple(a + b for a, b in zip(known, row, strict=True))
        return counted

    once, often = figures(1), figures(100)
    assert {row[0] for row in once.values()} == {1}
    assert often == {sql: tuple(100 * figure for figure in row) for sql, row in once.items()}


def vm_steps(profile: Profile) -> dict[str, tuple[int, int]]:
    """(VM steps, how many executions were counted) by statement."""
    figures: dict[str, tuple[int, int]] = {}
    for a in profile.aggregates:
        steps, counted = figures.get(a.statement, (0, 0))
        figures[a.statement] = (steps + a.counters.vm_steps, counted + a.counters.counted)
    return figures


def test_apsw_statements_inside_others() -> None:
    """What runs inside another statement is not taken for what had its address, or its text."""
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
    """By hundreds of others that begin and end meanwhile."""
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
    """Both drivers at once, in many threads: each statement with its own SQLite's counters."""
    apsw = pytest.importorskip("apsw")
    from concurrent.futures import ThreadPoolExecutor

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
        assert sum(a.counters.counted for a in began) == 40 * 30
        assert sum(a.counters.full_scan_steps for a in began) == 40 * 30 * 19
        assert sum(a.rows for a in found) == 30 * sum(n % 20 for n in range(40))


def test_apsw_is_left_as_it_was() -> None:
    """Types, functions, hooks, and whether connections load extensions."""
    apsw = pytest.importorskip("apsw")
    before = {
        (name, method): getattr(apsw, name).__dict__.get(method)
        for name, methods in APSW_METHODS.items()
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


def owned(module: types.ModuleType, driver: Driver) -> dict[tuple[str, str], object]:
    """What a driver's types and the module itself have under the names that are patched."""
    found = {}
    for name, methods in driver.types.items():
        owner = module
        for part in name.split("."):
            owner = getattr(owner, part)
        found |= {(name, method): vars(owner).get(method) for method in methods}
    return found | {("", name): vars(module).get(name) for name in driver.functions}


def test_psycopg(postgresql: str) -> None:
    """The calls of a PEP 249 driver in Python, once each, with rows and errors."""
    psycopg = pytest.importorskip("psycopg")
    from psycopg import sql

    before = owned(psycopg, PSYCOPG)
    with queryprof.profile() as recording:
        assert owned(psycopg, PSYCOPG) != before
        with psycopg.connect(postgresql) as connection:
            connection.execute("CREATE TEMP TABLE t (id int, name text)")
            cursor = connection.cursor()
            cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(n, str(n)) for n in range(10)])
            cursor.execute("UPDATE t SET name = 'x' WHERE id < %(id)s", {"id": 4})
            cursor.execute(sql.SQL("SELECT {} FROM t").format(sql.Identifier("id")))
            assert len(cursor.fetchall()) == 10
            cursor.execute(b"SELECT name FROM t")
            assert len(list(cursor)) == 10
            with connection.transaction():
                assert connection.execute("SELECT 1").fetchone() == (1,)
            with connection.cursor("named") as named:
                named.execute("SELECT id, name FROM t")
                assert len(named.fetchmany(3)) == 3
            with pytest.raises(psycopg.errors.UndefinedTable):
                cursor.execute("SELECT * FROM missing")
            connection.rollback()
    assert owned(psycopg, PSYCOPG) == before
    assert calls(recording.profile) == {
        ("(connect)", "connect"): 1,
        ("CREATE TEMP TABLE t(id int, name text)", "execute"): 1,
        ("INSERT INTO t VALUES (%s, %s)", "executemany"): 1,
        ("UPDATE t SET name = ? WHERE id < %(id)s", "execute"): 1,
        ('SELECT "id" FROM t', "execute"): 1,
        ('SELECT "id" FROM t', "fetchall"): 1,
        ("SELECT name FROM t", "execute"): 1,
        ("SELECT name FROM t", "next"): 11,
        ("BEGIN", "begin"): 1,
        ("COMMIT", "commit"): 2,
        ("SELECT ?", "execute"): 1,
        ("SELECT ?", "fetchone"): 1,
        ("SELECT id, name FROM t", "execute"): 1,
        ("SELECT id, name FROM t", "fetchmany"): 1,
        ("SELECT * FROM missing", "execute"): 1,
        ("ROLLBACK", "rollback"): 1,
        ("(close)", "close"): 1,
    }
    rows = by_operation(recording.profile, "rows")
    assert rows["INSERT INTO t VALUES (%s, %s)", "executemany"] == 10
    assert rows["UPDATE t SET name = ? WHERE id < %(id)s", "execute"] == 4
    assert rows['SELECT "id" FROM t', "execute"] == 0
    assert rows['SELECT "id" FROM t', "fetchall"] == 10
    (error,) = recording.profile.errors
    assert error.exception == "psycopg.errors.UndefinedTable"


def test_psycopg_awaited(postgresql: str) -> None:
    """Coroutines are measured from start to end, many at once; the loop is not held up by them."""
    psycopg = pytest.importorskip("psycopg")

    async def ask(number: int) -> int:
        async with await psycopg.AsyncConnection.connect(postgresql) as connection:
            cursor = await connection.execute("SELECT %s::int, pg_sleep(0.2)", (number,))
            row = await cursor.fetchone()
            assert row
            return int(row[0])

    async def main() -> list[int]:
        found = await asyncio.gather(*map(ask, range(20)))
        connection = await psycopg.AsyncConnection.connect(postgresql, autocommit=True)
        slow = asyncio.create_task(connection.execute("SELECT pg_sleep(30)"))
        await asyncio.sleep(0.2)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        coroutine = connection.execute("SELECT 'never awaited'")
        assert asyncio.iscoroutine(coroutine)
        coroutine.close()
        async with connection.cursor() as cursor:
            await cursor.execute("SELECT generate_series(1, 5)")
            assert [row[0] async for row in cursor] == [1, 2, 3, 4, 5]
        await connection.close()
        return list(found)

    with queryprof.profile() as recording:
        assert asyncio.run(main()) == list(range(20))
    found = calls(recording.profile)
    sleeping = "SELECT %s :: int, pg_sleep(?)"
    assert found[sleeping, "execute"] == found[sleeping, "fetchone"] == 20
    assert found["SELECT pg_sleep(?)", "execute"] == 1
    assert found["SELECT generate_series(?, ?)", "next"] == 6
    assert ("SELECT ?", "execute") not in found
    ask_aggregate = only(recording.profile, sleeping)
    assert ask_aggregate.path[0].function.endswith("ask")
    assert ask_aggregate.min_ns > 190_000_000
    cancelled = only(recording.profile, "SELECT pg_sleep(?)")
    assert cancelled.path[0].function.endswith("main")
    assert [e.exception for e in recording.profile.errors] == ["asyncio.exceptions.CancelledError"]
    (loop,) = recording.profile.loops
    assert loop.busy_ns < loop.run_ns / 2
    assert sum(step.database_ns for step in loop.functions) < loop.busy_ns


def test_duckdb() -> None:
    """A driver in C whose connection is its own cursor, and whose module has one."""
    duckdb = pytest.importorskip("duckdb")
    before = owned(duckdb, DUCKDB)
    with queryprof.profile() as recording:
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t (i int)")
        connection.executemany("INSERT INTO t VALUES (?)", [[1], [2]])
        assert connection.execute("SELECT i FROM t").fetchall() == [(1,), (2,)]
        connection.begin()
        connection.rollback()
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT * FROM missing")
        connection.close()
        assert duckdb.execute("SELECT 42").fetchone() == (42,)
    assert owned(duckdb, DUCKDB) == before
    assert calls(recording.profile) == {
        ("(connect)", "connect"): 1,
        ("CREATE TABLE t(i int)", "execute"): 1,
        ("INSERT INTO t VALUES (?)", "executemany"): 1,
        ("SELECT i FROM t", "execute"): 1,
        ("SELECT i FROM t", "fetchall"): 1,
        ("BEGIN", "begin"): 1,
        ("ROLLBACK", "rollback"): 1,
        ("SELECT * FROM missing", "execute"): 1,
        ("(close)", "close"): 1,
        ("SELECT ?", "execute"): 1,
        ("SELECT ?", "fetchone"): 1,
    }


DRIVER = """
import sqlite3
__version__ = "0.9"
class Cursor:
    "A cursor."
    rowcount = -1
    def __init__(self, connection):
        self._cursor = connection._connection.cursor()
    def execute(self, query, parameters=()):
        "Executes."
        self._cursor.execute(query, parameters)
        self.rowcount = self._cursor.rowcount
        return self
    def fetchone(self):
        return self._cursor.fetchone()
class Connection:
    def __init__(self):
        self._connection = sqlite3.connect(":memory:")
    def cursor(self):
        return Cursor(self)
    def execute(self, query, parameters=()):
        return self.cursor().execute(query, parameters)
    def commit(self):
        pass
    def __enter__(self):
        return self
    def __exit__(self, *exc_info):
        self.commit()
    def close(self):
        self._connection.close()
def connect():
    return Connection()
"""


def test_any_driver_by_name(
    script: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A driver that the program names, imported before, or afterwards."""
    script(DRIVER, "early_driver.py")
    script(DRIVER, "late_driver.py")
    monkeypatch.syspath_prepend(tmp_path)
    import early_driver  # type: ignore[import-not-found]

    original = early_driver.Cursor.__dict__["execute"]
    queryprof.instrument("late_driver")
    with queryprof.profile() as recording:
        queryprof.instrument("early_driver")
        assert importlib.util.find_spec("late_driver")  # looked for, and not imported yet
        import late_driver  # type: ignore[import-not-found]

        for driver in (early_driver, late_driver):
            execute = driver.Cursor.execute
            assert (execute.__name__, execute.__doc__) == ("execute", "Executes.")
            with driver.connect() as connection:
                connection.execute(f"SELECT 1 AS {driver.__name__}").fetchone()
            connection.cursor().execute(query=f"SELECT 2 AS {driver.__name__}")
            connection.close()
    assert early_driver.Cursor.__dict__["execute"] is original
    found = by_operation(recording.profile)
    for name in ("early_driver", "late_driver"):
        # What the driver itself runs through sqlite3 is measured under it.
        assert found[f"SELECT ? AS {name}", "execute"] == 2 + 2
        assert found[f"SELECT ? AS {name}", "fetchone"] == 1 + 1
    assert found["COMMIT", "commit"] == 2
    with pytest.raises(queryprof.DriverError, match="no Cursor is found in it; name the types"):
        with queryprof.profile():
            queryprof.instrument("json")


BROKEN = {
    "raise RuntimeError('no\\nlibrary')": "psycopg     not measured: it cannot be imported: no library",
    "__version__ = '0.1'": "psycopg     not measured: psycopg 0.1 has no Cursor; too old, or too new?",
    "class Cursor: pass": "psycopg     not measured: Cursor of psycopg has none of execute",
}


@pytest.mark.parametrize("source", BROKEN)
def test_a_broken_driver(
    source: str, script: Callable[[str, str], Path], queryprof: Run, tmp_path: Path
) -> None:
    """One line in the doctor's report; the program runs on, and fails only as it does bare."""
    script(source, "psycopg.py")
    program = script("import sys\ntry:\n  import psycopg\nexcept RuntimeError as e:\n  print(e)\n"
                     "import sqlite3; sqlite3.connect('').execute('SELECT 1')\nprint('ran on')", "p.py")  # fmt: skip
    env = {"PYTHONPATH": str(tmp_path)}
    doctor = queryprof("doctor", env=env)
    assert (doctor.returncode, doctor.stderr) == (0, "")
    (line,) = [line for line in doctor.stdout.splitlines() if line.startswith("psycopg")]
    assert line.startswith(BROKEN[source])
    recorded = queryprof("run", "-o", "p.qprof", program, env=env)
    bare = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert recorded.returncode == 0
    assert recorded.stdout.startswith(bare.stdout)
    told = [line for line in recorded.stderr.splitlines() if "psycopg" in line]
    assert len(told) == ("RuntimeError" not in source)


def test_no_driver(queryprof: Run) -> None:
    """The doctor says what is not installed."""
    hidden = "import sys; sys.modules['apsw'] = None"
    code = (
        f"{hidden}\nfrom queryprof.cli.main import main\nsys.argv = ['queryprof', 'doctor']\nmain()"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "apsw        not installed" in found.stdout


def test_awaiting_an_awaited_call_is_like_awaiting_the_coroutine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Results, exceptions, cancellation, throw, close and a call that is made but not awaited."""
    module = types.ModuleType("asynchronous_driver")

    class Cursor:
        async def execute(self, query: str, parameters: object = None) -> object:
            if query == "raise":
                raise LookupError(query)
            if query == "return":
                return parameters
            try:
                await asyncio.sleep(0 if query == "fast" else 30)
            except asyncio.CancelledError:
                if query == "stubborn":
                    return "went on"
                raise
            return self

    class Connection:
        async def commit(self) -> None: ...

    module.Cursor, module.Connection = Cursor, Connection  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    async def behaviour() -> list[object]:
        cursor = Cursor()
        seen: list[object] = []
        for query, parameters in (
            ("fast", None), ("raise", None), ("return", (1, 2)), ("return", None),
            ("return", StopIteration(5)), ("return", ValueError("x")),
        ):  # fmt: skip
            try:
                result = await cursor.execute(query, parameters)
                seen.append(result if result is not cursor else "the cursor")
            except Exception as error:
                seen.append(repr(error))
        for query in ("slow", "stubborn"):
            task = asyncio.create_task(cursor.execute(query))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            task.cancel()
            try:
                seen.append(await task)
            except asyncio.CancelledError:
                seen.append("cancelled")
        seen.append(await asyncio.gather(cursor.execute("fast"), cursor.execute("return", 3)))
        seen.append(await asyncio.wait_for(cursor.execute("return", 4), 5))
        coroutine = cursor.execute("slow")
        seen += [coroutine.send(None) is not None, asyncio.iscoroutine(coroutine)]
        try:
            coroutine.throw(KeyError("thrown"))
        except KeyError as error:
            seen.append(repr(error))
        coroutine = cursor.execute("return", 6)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            seen.append(stop.value)
        cursor.execute("slow").close()
        return [s if s is not cursor else "the cursor" for s in seen]

    def plain(seen: list[object]) -> list[str]:
        return [str(s).partition(" at 0x")[0] for s in seen]

    bare = plain(asyncio.run(behaviour()))
    queryprof.instrument(module.__name__)
    with queryprof.profile() as recording:
        assert plain(asyncio.run(behaviour())) == bare
    counts = by_operation(recording.profile)
    assert sum(counts.values()) == 13
    assert sum(e.count for e in recording.profile.errors) == 3
    assert not _core.is_on()


def hooked() -> dict[str, object]:
    """Everything that a hook may replace in the libraries that are here, by name."""
    import importlib

    from queryprof.hooks import executors
    from queryprof.hooks.apsw_driver import METHODS

    found = {}
    owners: list[tuple[str, str, tuple[str, ...]]] = [
        ("apsw", name, tuple(methods)) for name, methods in METHODS.items()
    ]
    owners += [(d.module, name, tuple(m)) for d in (PSYCOPG, DUCKDB) for name, m in d.types.items()]
    hooks = (executors.thread_pool_hook(), executors.twisted_hook(),
             executors.anyio_hook(), executors.aiosqlite_hook())  # fmt: skip
    owners += [(h.module, o.owner, (o.method,)) for h in hooks for o in h.handovers]
    for module_name, owner_name, methods in owners:
        try:
            owner = getattr(importlib.import_module(module_name), owner_name)
        except ImportError:
            continue
        for method in methods:
            found[f"{module_name}.{owner_name}.{method}"] = vars(owner).get(method)
    return found


def test_uninstall_puts_everything_back() -> None:
    """Types and functions of every driver and executor, by identity, twice."""
    before = hooked()
    assert len(before) > 20
    for _ in range(2):
        queryprof.install("x.qprof")
        during = hooked()
        queryprof.uninstall()
        after = hooked()
        assert all(after[name] is before[name] for name in before)
    # What is exchanged in place stays the same object while it is measured, too.
    same = {name.partition(".")[0] for name in before if during[name] is before[name] is not None}
    assert same <= {"apsw", "psycopg"}, same
