"""Drivers other than sqlite3: each call is measured once, with the calling line, and nothing
changes.
"""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import queryprof
from conftest import Run, by_operation, only, owned
from queryprof.core import _core
from queryprof.hooks.drivers.pep249 import DUCKDB, PSYCOPG
from queryprof.model import Profile

pytestmark = pytest.mark.once

HERE = Path(__file__).name


def calls(profile: Profile) -> Counter[tuple[str, str]]:
    """Return the calls by (statement, operation). All of them were made in this file."""
    for aggregate in profile.aggregates:
        assert Path(aggregate.path[0].file).name == HERE, aggregate
    return by_operation(profile)


def test_psycopg(postgresql: str) -> None:
    """The calls of a PEP 249 driver in Python count once each, with rows and errors."""
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
    """Coroutines are measured from start to end, many at once, and do not block the loop."""
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
    assert loop.run_ns - loop.busy_ns > 100_000_000, "it has waited for the server"
    assert sum(step.database_ns for step in loop.functions) < loop.busy_ns


def test_duckdb() -> None:
    """This driver in C uses its connection as the cursor, and its module has a connection too."""
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
    """The program names a driver, which is imported before or afterwards."""
    script(DRIVER, "early_driver.py")
    script(DRIVER, "late_driver.py")
    monkeypatch.syspath_prepend(tmp_path)
    import early_driver  # type: ignore[import-not-found]

    original = early_driver.Cursor.__dict__["execute"]
    queryprof.instrument("late_driver")
    with queryprof.profile() as recording:
        queryprof.instrument("early_driver")
        assert importlib.util.find_spec("late_driver")  # expected, and not imported yet
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
        # Calls of the driver itself through sqlite3 count for the driver.
        assert found[f"SELECT ? AS {name}", "execute"] == 2 + 2
        assert found[f"SELECT ? AS {name}", "fetchone"] == 1 + 1
    assert found["COMMIT", "commit"] == 2


@pytest.mark.parametrize(
    ("types", "output"),
    [
        ("", "json: no Cursor found; pass the types: "),
        (", cursors=['JSONDecoder']", "JSONDecoder of json has none of execute"),
    ],
)
@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.repeats
def test_a_module_that_is_no_driver(types: str, output: str, is_recorded: bool) -> None:
    """A recorded program prints a message and continues. Another program prints nothing."""
    code = f"import json, queryprof; queryprof.instrument('json'{types}); print('goes on')"
    recording = ["-m", "queryprof", "run", "--no-report", "-o", "x.qprof"] if is_recorded else []
    done = subprocess.run(
        [sys.executable, *recording, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert (f"queryprof: json is not measured: {output}" in done.stderr) is is_recorded


BROKEN = {
    "raise RuntimeError('no\\nlibrary')": (
        "psycopg     not measured: it cannot be imported: no library"
    ),
    "__version__ = '0.1'": (
        "psycopg     not measured: psycopg 0.1 has no Cursor; too old, or too new?"
    ),
    "class Cursor: pass": "psycopg     not measured: Cursor of psycopg has none of execute",
}


@pytest.mark.slow
@pytest.mark.parametrize("source", BROKEN)
def test_a_broken_driver(
    source: str, script: Callable[[str, str], Path], queryprof: Run, tmp_path: Path
) -> None:
    """The doctor reports it in one line. The program continues, and fails only where it fails without
    recording.
    """
    script(source, "psycopg.py")
    program = script(
        "import sys\ntry:\n  import psycopg\nexcept RuntimeError as e:\n  print(e)\n"
        "import sqlite3; sqlite3.connect('').execute('SELECT 1')\nprint('ran on')",
        "p.py",
    )
    env = {"PYTHONPATH": str(tmp_path)}
    doctor = queryprof("doctor", env=env)
    assert (doctor.returncode, doctor.stderr) == (0, "")
    (line,) = [line for line in doctor.stdout.splitlines() if line.startswith("psycopg ")]
    assert line.startswith(BROKEN[source])
    recorded = queryprof("run", "-o", "p.qprof", program, env=env)
    bare = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert recorded.returncode == 0
    assert recorded.stdout.startswith(bare.stdout)
    reported = [line for line in recorded.stderr.splitlines() if "psycopg is not measured" in line]
    assert len(reported) == ("RuntimeError" not in source)


@pytest.mark.slow
def test_no_driver(queryprof: Run) -> None:
    """The doctor lists the drivers that are not installed."""
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
    """Results, exceptions, cancellation, throw and close are the same, and so is a call that is not
    awaited.
    """
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
            ("fast", None),
            ("raise", None),
            ("return", (1, 2)),
            ("return", None),
            ("return", StopIteration(5)),
            ("return", ValueError("x")),
        ):
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
