"""Objects that end while queryprof uses them: a call's pool, a statement object, a replaced method.

Each program runs in its own process: if the core used a freed object, it would crash.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PAUSED = """
import asyncio, sqlite3, sys, types, queryprof

class Cursor:
    async def execute(self, query):
        await asyncio.sleep(0.01)

class Connection:
    async def execute(self, query):
        return await Cursor().execute(query)

module = types.ModuleType("pausing_driver")
vars(module).update(Cursor=Cursor, Connection=Connection)
sys.modules[module.__name__] = module
queryprof.instrument(module.__name__)

async def main():
    cursor = sqlite3.connect(":memory:").execute("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3")
    print(cursor.fetchone())
    waiting = [asyncio.create_task(Connection().execute("SELECT 9")) for _ in range(5)]
    await asyncio.sleep(0)
    print(next(cursor), cursor.fetchone())
    await asyncio.gather(*waiting)

with queryprof.profile() as recording:
    asyncio.run(main())
counts = {a.operation: a.count for a in recording.profile.aggregates}
print(counts["next"], counts["fetchone"])
"""

PUT_BACK = """
import sqlite3, queryprof

class Own(sqlite3.Cursor):
    def __next__(self):
        return super().__next__()

with queryprof.profile():
    class Back(Own):
        __next__ = sqlite3.Cursor.__next__
cursor = sqlite3.connect(":memory:").cursor(Back)
print(next(cursor.execute("SELECT 1")))
"""

GONE_THREAD = """
import asyncio, threading, greenlet, queryprof
kept = []

def work():
    async def main():
        await asyncio.sleep(0)
        greenlet.getcurrent().parent.switch()  # never comes back: the step stays in progress
    waiting = greenlet.greenlet(lambda: asyncio.run(main()))
    kept.append(waiting)
    waiting.switch()

with queryprof.profile():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for _ in range(20):
        threading.Thread(target=lambda: None).start()
    asyncio.run(asyncio.sleep(0.6))
print("ok")
"""

OLD_PATH = """
import asyncio, sys, types, queryprof

class Cursor:
    async def execute(self, query):
        await asyncio.sleep(0)

module = types.ModuleType("pausing_driver")
vars(module).update(Cursor=Cursor, Connection=Cursor)
sys.modules[module.__name__] = module
queryprof.instrument(module.__name__)
with queryprof.profile():
    for line in range(50):
        exec(compile("\\n" * line + "made = Cursor().execute('SELECT 9')", __file__, "exec"))
        if line < 49:
            asyncio.run(made)
with queryprof.profile() as recording:
    asyncio.run(made)
print(sum(a.count for a in recording.profile.aggregates))
"""

DYING = """
import gc, sqlite3, threading, time, queryprof

with queryprof.profile():
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    held = [connection(f"SELECT {i}") for i in range(5)]
    started = threading.Event()

    def work():
        started.set()
        connection.execute("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r"
                           " LIMIT 3000000) SELECT count(*) FROM r").fetchall()

    threads = [threading.Thread(target=work), threading.Thread(target=held.clear)]
    threads[0].start()
    started.wait()
    time.sleep(0.02)
    threads[1].start()
    while threads[0].is_alive():  # the statement's end waits for the connection
        gc.get_objects()
    for thread in threads:
        thread.join()
print("done")
"""

BLOBS = """
import sqlite3, queryprof
with queryprof.profile() as recording:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (zeroblob(9))")
    with connection.blobopen("t", "a", 1) as blob:
        blob.write(b"abc")
        blob[0] = 1
        blob.seek(0)
        print(blob.read(3), blob[1])
print(sum(a.count for a in recording.profile.aggregates if a.operation.startswith("blob")))
"""


@pytest.mark.parametrize(
    ("program", "output"),
    [
        pytest.param(PAUSED, "(1,)\n(2,) (3,)\n1 2\n", id="a call from a pool that others wait in"),
        pytest.param(PUT_BACK, "(1,)\n", id="a method below one that overrides it"),
        pytest.param(DYING, "done\n", id="a statement object that waits for its end"),
        pytest.param(
            GONE_THREAD,
            "ok\n",
            id="a step of a thread that has ended",
            marks=pytest.mark.skipif(
                "asan" in os.environ.get("LD_PRELOAD", ""),
                reason="ASan takes switching stacks for overflows",
            ),
        ),
        pytest.param(OLD_PATH, "1\n", id="a coroutine that was made in the recording before"),
        pytest.param(BLOBS, "b'\\x01bc' 98\n5\n", id="a blob, which is no connection"),
    ],
)
@pytest.mark.repeats
def test_it_ends_as_without_queryprof(
    program: str, output: str, script: Callable[[str], Path]
) -> None:
    """The program gets the same results, and does not crash."""
    result = subprocess.run(
        [sys.executable, script(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "MALLOC_PERTURB_": "85", "PYTHONMALLOC": "malloc"},
        timeout=400,  # of an emulated processor
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, output), result.stderr
