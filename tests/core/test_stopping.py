"""Recording ends and begins again while calls of the program are in progress, inside them or in
other threads.

The program continues, and the next recording contains only its own calls.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STOPPING = """
import sys, threading, queryprof
{0}
queryprof.install()
def stop():
    queryprof.uninstall()
    if sys.argv[1] == "again":
        queryprof.install()
{1}
print("on to the end")
"""

TEXT = """
import psycopg
class Query:
    def as_string(self, context=None):
        stop()
        return "SELECT 1"
try:
    psycopg.Cursor.execute(object(), Query())
except AttributeError:
    pass
"""

ROWCOUNT = """
import psycopg
class Cursor:
    def execute(self, *args, **kwargs):
        return self
    @property
    def rowcount(self):
        stop()
        return 3
class Connection:
    def cursor(self, *args, **kwargs):
        return Cursor()
for turn in range(2):
    psycopg.Connection.execute(Connection(), "INSERT INTO t VALUES (1)")
"""

GREENLET = """
import greenlet, sqlite3
class Greenlet(greenlet.greenlet):
    @property
    def parent(self):
        stop()
connection = sqlite3.connect(":memory:")
assert Greenlet(lambda: connection.execute("SELECT 1").fetchall()).switch() == [(1,)]
"""

THREAD = """
import sqlite3
class Thread(threading.Thread):
    @property
    def _name(self):
        if self.is_alive():
            stop()
        return "odd"
    @_name.setter
    def _name(self, name):
        pass
thread = Thread(target=lambda: sqlite3.connect(":memory:").execute("SELECT 1").fetchall())
thread.start(); thread.join()
"""

FUNCTION = """
import sqlite3
connection = sqlite3.connect(":memory:")
connection.create_function("stop", 0, stop)
connection.execute("CREATE TABLE t (a)")
connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(10)])
for turn in range(3):
    assert len(connection.execute("SELECT a, stop() FROM t").fetchall()) == 10
    cursor = connection.execute("SELECT a, stop() FROM t")
    assert cursor.fetchone()[0] == 0 and len(list(cursor)) == 9
    connection.executemany("INSERT INTO t SELECT ? WHERE stop() = 1", [(1,), (2,)])
    connection.executescript("SELECT stop(); SELECT stop()")
"""


def run(program: Path, *arguments: str) -> str:
    """Run a program that succeeds with an empty stderr, and return its output."""
    done = subprocess.run(
        [sys.executable, program, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=program.parent,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("then", ["off", "again"])
@pytest.mark.parametrize(
    ("needs", "inside"),
    [
        ("psycopg", TEXT),
        ("psycopg", ROWCOUNT),
        ("greenlet", GREENLET),
        ("sqlite3", THREAD),
        ("sqlite3", FUNCTION),
    ],
    ids=["text", "rowcount", "greenlet", "thread", "function"],
)
@pytest.mark.repeats
def test_the_programs_own_code_ends_it(needs: str, inside: str, then: str, tmp_path: Path) -> None:
    """The core or the driver calls code of the program, which may stop recording."""
    pytest.importorskip(needs)
    program = tmp_path / "program.py"
    program.write_text(STOPPING.format("", inside))
    assert run(program, then) == "on to the end\n"


SCRIPTS = """
import sqlite3, sys, threading, queryprof
EARLIER = int(sys.argv[1])
THREADS = 20
gate = threading.Barrier(THREADS + 1)
begun = [threading.Event() for _ in range(THREADS)]
script = ";".join(["WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 5000)"
                   " SELECT sum(n) FROM r"] * 40)
def work(number):
    connection = sqlite3.connect(":memory:")
    connection.create_function("begun", 0, begun[number].set)
    gate.wait()
    connection.executescript("SELECT begun();" + script)
queryprof.install()
for i in range(EARLIER):
    sqlite3.connect(":memory:").execute(f"SELECT {i} AS c{i}")
threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
for thread in threads:
    thread.start()
gate.wait()
for event in begun:
    event.wait()
queryprof.uninstall()
with queryprof.profile() as recording:
    sqlite3.connect(":memory:").execute("SELECT 1 AS during").fetchall()
    for thread in threads:
        thread.join()
    sqlite3.connect(":memory:").execute("SELECT 1 AS after").fetchall()
aggregates = recording.profile.aggregates
print(*sorted({a.statement for a in aggregates if a.operation == "execute"}))
print("VM steps of others:", sum(a.vm_steps for a in aggregates) > 1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("earlier", [300, 0])
def test_scripts_of_an_earlier_recording_go_on(tmp_path: Path, earlier: int) -> None:
    """Their statements are not counted in the next recording, whether their numbers are too high
    for it or belong to other statements there.
    """
    program = tmp_path / "program.py"
    program.write_text(SCRIPTS)
    asked = "SELECT ? AS after SELECT ? AS during\n"
    assert run(program, str(earlier)) == asked + "VM steps of others: False\n"


SHARED_CACHE = """
import sqlite3, threading, queryprof
queryprof.install()
URI = "file:shared?mode=memory&cache=shared"
kept = sqlite3.connect(URI, uri=True)
kept.execute("CREATE TABLE t (a, b)")
kept.executemany("INSERT INTO t VALUES (?, ?)", [(i, i) for i in range(300)])
kept.commit()
done = threading.Event()
def slow():
    connection = sqlite3.connect(URI, uri=True)
    connection.create_function("f", 1, lambda value: value)
    while not done.is_set():
        connection.execute("SELECT sum(f(a)) FROM t").fetchall()
thread = threading.Thread(target=slow)
thread.start()
connection = sqlite3.connect(URI, uri=True)
for i in range(1500):
    connection.execute(f'SELECT "a" AS a{i} FROM t WHERE "b" = {i}').fetchall()
done.set()
thread.join()
print("done")
"""


@pytest.mark.once
def test_a_shared_cache_is_not_waited_for_with_the_gil(tmp_path: Path) -> None:
    """Its mutex is held by a thread that waits for the GIL to run a function of the program."""
    program = tmp_path / "program.py"
    program.write_text(SHARED_CACHE)
    assert run(program) == "done\n"
