"""Programs that are recorded in windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import queryprof.startup

SAME_WORK = """
import asyncio, os, sqlite3, sys, threading, time
import queryprof
from queryprof.core import _core

HOUR_NS = 3600 * 10**9
windows = sys.argv[1] == "windows"
queryprof.install("x.qprof", window="1h" if windows else None)
now = time.time_ns()
borders = 0

def border():
    global borders
    borders += 1
    if windows:
        _core.end_window(now + borders * HOUR_NS)

connection = sqlite3.connect("x.db", check_same_thread=False)
connection.execute("CREATE TABLE t (a, b)")
connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, i % 7) for i in range(500)])
border()
connection.commit()
cursors = [connection.execute("SELECT a FROM t WHERE b = ?", (i,)) for i in range(3)]
slow = connection.execute("SELECT t1.a FROM t t1, t t2")
for turn in range(3):
    for cursor in cursors:
        cursor.fetchone()
    for _ in range(50):
        next(slow)
    border()
slow.fetchmany(1000)

def work(number):
    own = sqlite3.connect("x.db")
    for turn in range(20):
        with queryprof.span(f"job {number}"):
            own.execute("SELECT count(*) FROM t WHERE a > ?", (turn,)).fetchone()
            if turn % 5 == 0:
                barrier.wait()
            try:
                own.execute("SELECT nothing FROM t")
            except sqlite3.OperationalError:
                pass
    own.close()

barrier = threading.Barrier(4, action=border)
threads = [threading.Thread(target=work, args=(number,), name=f"worker {number}") for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()

async def task(number):
    for turn in range(5):
        with queryprof.span("task"):
            connection.execute("SELECT b FROM t WHERE a = ?", (turn,)).fetchall()
            await asyncio.sleep(0)
            if number == 0:
                border()
            connection.execute("UPDATE t SET b = b WHERE a = ?", (turn,))
    connection.commit()

async def main():
    await asyncio.gather(*(task(number) for number in range(4)))
asyncio.run(main())

def rows():
    for i in range(100):
        if i == 50:
            border()
        yield i, i
connection.executemany("INSERT INTO t VALUES (?, ?)", rows())
for cursor in cursors:
    cursor.fetchall()
child = os.fork()
connection.execute("SELECT max(a) FROM t").fetchone()
border()
connection.execute("SELECT min(a) FROM t").fetchone()
if not child:
    queryprof.uninstall()
    os._exit(0)
os.waitpid(child, 0)
del slow
connection.rollback()
connection.close()
"""
"""The same work in every run. With the argument "windows", windows end while transactions, cursors,
spans and tasks are open.
"""


def run(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in the working directory."""
    Path("program.py").write_text(text)
    return subprocess.run(
        [sys.executable, "program.py", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.path.dirname(queryprof.startup.__file__),
            **environment,
        },
    )
