"""A function that queryprof measures behaves as before.

On Python 3.12 and newer a Python function stays in place. Other functions are replaced by an object
that behaves like the original.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import queryprof

REFUSED = {"uvloop.Loop", "'libsql", "'duckdb'", "DuckDBPy"}
"""Functions that pickle finds by a name that still has the original."""


def test_every_measured_function_answers_as_its_original(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", Path(__file__).with_name("stand_ins.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    looked = json.loads(done.stdout)
    differences = looked["differences"]
    # A C function takes no weak reference; its stand-in does.
    assert all("'TypeError' True" in one for one in differences.pop("weak reference"))
    # A C function's bound method has a type of its own library.
    assert all(one.endswith("'method'") for one in differences.pop("bound", []))
    pickled = differences.pop("pickle", [])
    assert not [one for one in pickled if not any(name in one for name in REFUSED)]
    assert not differences
    assert not looked["left"]
    assert looked["in_place"] + looked["replaced"] >= 100
    if sys.version_info < (3, 12):
        assert not looked["in_place"]
    else:
        # CPython calls __init__ without a look at the function. One function of DuckDB has
        # three names.
        exceptions = (" __init__", " sql", " query", " from_query")
        assert all(name.endswith(exceptions) for name in looked["replaced_functions"])
        assert looked["in_place"] >= 50


PROGRAM = """
import asyncio, sqlite3, sys, weakref
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

class Pool(ThreadPoolExecutor):
    def submit(self, *args, **kwargs):
        return super().submit(*args, **kwargs)

pool = Pool(1)
early = ThreadPoolExecutor.submit
bound = pool.submit
seen = []

def check():
    with mock.patch.object(ThreadPoolExecutor, "submit", autospec=True) as submit:
        pool.submit(print, 1)
        seen.append(submit.call_args == mock.call(pool, print, 1))
    try:
        mock.create_autospec(ThreadPoolExecutor.submit)()
    except TypeError as error:
        seen.append(str(error))
    seen.append([f(*a).result() for f, a in ((bound, (abs, -1)), (early, (pool, abs, -2)))])
    seen.append(weakref.ref(asyncio.Handle._run)() is asyncio.Handle._run)
    original = ThreadPoolExecutor.submit
    ThreadPoolExecutor.submit = lambda self, *args: original(self, *args)
    seen.append(pool.submit(abs, -3).result())
    ThreadPoolExecutor.submit = original
    seen.append(ThreadPoolExecutor.__dict__["submit"] is original)

    async def main():
        async def coroutine():
            return await asyncio.to_thread(abs, -4)
        return await asyncio.gather(asyncio.create_task(coroutine()), coroutine())

    seen.append(asyncio.run(main()))

check()
if len(sys.argv) > 1:
    import queryprof
    queryprof.install("a.qprof")
    check()
    queryprof.uninstall()
else:
    check()
check()
print(seen)
"""


def test_a_program_that_replaces_and_mocks_functions_does_the_same(tmp_path: Path) -> None:
    bare, recorded = (
        subprocess.run(
            [sys.executable, "-c", PROGRAM, *more], capture_output=True, text=True, check=True
        ).stdout
        for more in ([], ["recorded"])
    )
    assert recorded == bare


NAMES = """
class Cursor:
    @staticmethod
    def execute(sql, parameters=()): return sql, parameters
    def fetchone(self): return (1,)

class Connection:
    def _nothing(self): return self
    commit = rollback = close = _nothing
    def ping(self): return self._nothing()
    @classmethod
    def executemany(cls, sql, rows): return cls, sql

def connect(): return Connection()
"""


def test_functions_of_several_names_and_static_methods_are_measured_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "named_driver.py").write_text(NAMES)
    monkeypatch.syspath_prepend(str(tmp_path))
    queryprof.instrument("named_driver")
    with queryprof.profile() as recording:
        import named_driver

        connection = named_driver.connect()
        connection.commit()
        connection.rollback()
        connection.rollback()
        connection.close()
        connection.ping()
        assert named_driver.Cursor().execute("SELECT 1", (2,)) == ("SELECT 1", (2,))
        assert named_driver.Cursor.execute("SELECT 2") == ("SELECT 2", ())
        assert connection.executemany("SELECT 3", []) == (named_driver.Connection, "SELECT 3")
    counts = {one.operation: 0 for one in recording.profile.aggregates}
    for one in recording.profile.aggregates:
        counts[one.operation] += one.count
    assert counts == {
        "connect": 1,
        "commit": 1,
        "rollback": 2,
        "close": 1,
        "execute": 2,
        "executemany": 1,
    }
    del sys.modules["named_driver"]
