"""queryprof keeps nothing longer than its owner lives, and no program notices that it is recorded.

Each program runs in its own process, bare and recorded, so that a crash is a failure and does not
end the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import EXAMPLES, QUERYPROF, by_operation, only
from queryprof.collect.reader import read_profile
from queryprof.model import Profile

RANDOM_PROGRAMS = Path(__file__).with_name("random_programs.py")
IS_SLOW = os.environ.get("QUERYPROF_LONG_PROGRAMS") == "1"
"""Run few long programs instead of many short ones: `nox -s sanitize`."""

Record = Callable[..., Profile]


def run(command: list[object], directory: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command that overwrites freed memory, so that a use of it shows."""
    directory.mkdir()
    environment = {**os.environ, "MALLOC_PERTURB_": "85", "PYTHONMALLOC": "malloc"}
    words = [str(part) for part in command]
    return subprocess.run(
        words, capture_output=True, cwd=directory, env=environment, timeout=300, check=False
    )


@pytest.fixture
def same(tmp_path: Path) -> Record:
    """Run a program bare and recorded, compare all its results, and return the profile."""

    def compare(program: Path, *arguments: object) -> Profile:
        bare, recorded = tmp_path / "bare", tmp_path / "recorded"
        trace = tmp_path / "x.qprof"
        before = run([sys.executable, program, *arguments], bare)
        after = run(
            [QUERYPROF, "run", "--no-report", "-o", trace, program, *arguments],
            recorded,
        )
        assert after.returncode == before.returncode, after.stderr.decode()
        assert after.stdout.splitlines() == before.stdout.splitlines()
        assert after.stderr == before.stderr
        names = sorted(path.name for path in bare.iterdir())
        assert sorted(path.name for path in recorded.iterdir()) == names
        for name in names:
            assert (recorded / name).read_bytes() == (bare / name).read_bytes(), name
        return read_profile(str(trace))

    return compare


GREENLETS = """
import sqlite3, sys

if sys.argv[1] == "gevent":
    import gevent
    switch, spawn = lambda: gevent.sleep(0), gevent.spawn
    wait, Killed = (lambda one: one.get()), gevent.GreenletExit
else:
    import eventlet, greenlet
    switch, spawn = lambda: eventlet.sleep(0), eventlet.spawn
    wait, Killed = (lambda one: one.wait()), greenlet.GreenletExit

def rows(count):
    for i in range(count):
        switch()
        yield (i,)

def slow(value):
    switch()
    return value

def factory(cursor, row):
    switch()
    return row[0]

def connect():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("slow", 1, slow)
    connection.execute("CREATE TABLE t (a)")
    return connection

def nested(value):
    # its own greenlet, which switches again inside the driver, and one more inside that
    def inside(depth):
        connection = connect()
        if depth:
            connection.create_function("deeper", 0, lambda: wait(spawn(inside, depth - 1)))
            return connection.execute("SELECT deeper() AS deeper").fetchone()[0]
        connection.executemany("INSERT INTO t VALUES (?)", rows(3))
        return connection.execute("SELECT sum(slow(a)) AS nested FROM t").fetchone()[0]
    return wait(spawn(inside, 1))

def work(number):
    connection = connect()
    connection.create_function("nested", 1, nested)
    connection.executemany("INSERT INTO t VALUES (?)", rows(number % 7))
    total = connection.execute("SELECT sum(slow(a)) AS total FROM t").fetchone()
    connection.row_factory = factory
    made = connection.execute("SELECT a AS made FROM t ORDER BY a").fetchall()
    connection.row_factory = None
    progress = lambda: switch()
    connection.set_progress_handler(progress, 20)
    long = connection.execute("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r"
                              " LIMIT 50) SELECT count(*) AS long FROM r").fetchone()
    connection.set_progress_handler(None, 0)
    deep = connection.execute("SELECT nested(1) AS deep").fetchone()
    return number, total, made, long, deep

killed = []
def victim(number):
    connection = connect()
    try:
        if number % 2:
            connection.executemany("INSERT INTO t VALUES (?)", rows(1000))
        else:
            connection.execute("SELECT slow(1) AS victim, slow(2), slow(3), slow(4)").fetchall()
    except (Killed, sqlite3.Error) as error:
        killed.append(number)
        raise Killed from None

workers = [spawn(work, number) for number in range(40)]
victims = [spawn(victim, number) for number in range(20)]
switch(); switch()
for one in victims:
    one.kill()
for one in workers:
    print(wait(one))
print(sorted(killed), len(victims))
"""


@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="ASan takes switching stacks for overflows"
)
@pytest.mark.slow
@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_greenlets_switch_anywhere(
    library: str, same: Record, script: Callable[[str], Path]
) -> None:
    """Calls wait in greenlets, are killed there and end in any order. Each counts once."""
    if not find_spec(library):  # importing eventlet changes what a fork does here
        pytest.skip(f"{library} is not installed")
    profile = same(script(GREENLETS), library)
    counts = by_operation(profile)
    assert counts["INSERT INTO t VALUES (?)", "executemany"] == 40 + 40 + 10
    for name in ("total", "nested"):
        assert counts[f"SELECT sum(slow(a)) AS {name} FROM t", "execute"] == 40
    for text in (
        "SELECT a AS made FROM t ORDER BY a",
        "SELECT nested(?) AS deep",
        "SELECT deeper() AS deeper",
    ):
        assert counts[text, "execute"] == 40


VIRTUAL_TABLES = """
import sqlite3, sys
cached, disturbed = int(sys.argv[1]), sys.argv[2] == "1"
connection = sqlite3.connect("x.db", isolation_level=None, cached_statements=cached)
other = sqlite3.connect("x.db", isolation_level=None)
for name, sql in (("r", "rtree(id, low, high)"), ("f", "fts4(a, b)"), ("g", "fts5(a, b)")):
    try:
        connection.execute(f"CREATE VIRTUAL TABLE {name} USING {sql}")
    except sqlite3.OperationalError:
        continue
    insert = f"INSERT INTO {name} VALUES ({'?, ?, ?' if name == 'r' else '?, ?'})"
    for i in range(30):
        if disturbed:
            other.execute(f"CREATE TABLE {name}{i} (a)")
        if i % 2:  # the new schema is read by another statement, or by the INSERT itself
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        connection.execute(insert, (i, i, i + 1)[: 3 if name == "r" else 2])
    print(name, connection.execute(f"SELECT count(*) FROM {name}").fetchone())
"""


@pytest.mark.slow
@pytest.mark.parametrize("cached_statements", [0, 128])
def test_a_virtual_table_that_is_connected_again(
    cached_statements: int, same: Record, script: Callable[[str], Path], tmp_path: Path
) -> None:
    """Its own statements during the program's INSERT do not count for the INSERT, even if that is
    prepared again.
    """
    program = script(VIRTUAL_TABLES)
    disturbed = same(program, cached_statements, 1)
    for name in ("bare", "recorded"):
        (tmp_path / name).rename(tmp_path / f"{name} disturbed")
    calm = same(program, cached_statements, 0)
    inserts = [a for a in calm.aggregates if a.statement.startswith("INSERT INTO")]
    assert inserts
    for insert in inserts:
        again = only(disturbed, insert.statement)
        assert insert.count == again.count == again.counted == 30
        # SQLite needs about two steps to notice that a statement must be prepared again
        more = (again.vm_steps - insert.vm_steps) / 30
        assert 0 <= more <= 10
    ours = {a.statement for a in disturbed.aggregates}
    assert {plan.statement for plan in disturbed.plans} <= ours


CONNECTIONS = """
import gc, sqlite3, threading, time, queryprof
shared = sqlite3.connect(":memory:", check_same_thread=False)
mine = [sqlite3.connect(":memory:", check_same_thread=False) for _ in range(8)]
for connection in (shared, *mine):
    connection.execute("SELECT 0").fetchall()
gc.freeze()  # as servers do before they fork: no look at all objects finds these
stop = threading.Event()
def come_and_go():
    while not stop.is_set():
        connection = sqlite3.connect(":memory:", cached_statements=2)
        connection.create_function("pause", 0, lambda: time.sleep(0.001))
        connection.execute("SELECT pause()").fetchall()
        connection.close()  # while install() may be waiting for it
def share():
    while not stop.is_set():
        shared.execute("SELECT 1 AS busy").fetchall()
threads = [threading.Thread(target=f) for f in (*[come_and_go] * 4, share)]
for thread in threads:
    thread.start()
found = []
for turn in range(15):
    with queryprof.profile() as recording:
        for connection in mine:
            for _ in range(3):
                connection.execute("SELECT 1 AS mine").fetchall()
    one, = [a for a in recording.profile.aggregates if a.statement == "SELECT ? AS mine"
            and a.operation == "execute"]
    found.append((one.count, one.counted))
stop.set()
for thread in threads:
    thread.join()
with queryprof.profile() as recording:
    shared.execute("SELECT 1 AS shared").fetchall()
one, = [a for a in recording.profile.aggregates if a.statement == "SELECT ? AS shared"
        and a.operation == "execute"]
print(set(found), one.counted)
"""


def test_connections_that_were_open_before(script: Callable[[str], Path], tmp_path: Path) -> None:
    """They are counted from their first call, while others come and go in other threads."""
    result = run([sys.executable, script(CONNECTIONS)], tmp_path / "alone")
    assert (result.returncode, result.stdout) == (0, b"{(24, 24)} 1\n"), result.stderr.decode()


CHANGES = """
import sqlite3
c = sqlite3.connect("x.db", isolation_level=None)
c.create_function("seen", 0, lambda: c.execute("SELECT changes()").fetchone()[0])
c.executescript('''
CREATE TABLE t (a, b DEFAULT (changes()), UNIQUE (a));
CREATE TABLE "odd ""name" (a, "changes()" DEFAULT (total_changes() || '/' || changes()));
CREATE TABLE log (what, n);
CREATE VIEW w AS SELECT changes() AS n;
CREATE TRIGGER g BEFORE INSERT ON t BEGIN INSERT INTO log VALUES ('before', changes()); END;
CREATE TRIGGER h AFTER UPDATE ON t BEGIN INSERT INTO log SELECT 'after', n FROM w; END;
''')
for turn in range(3):
    for sql in (
        "INSERT INTO t (a) VALUES (1{0}), (2{0}), (3{0})",
        "INSERT INTO log SELECT 'view', n FROM w",
        "INSERT INTO t (a) SELECT a + 100 FROM t",
        'INSERT INTO "odd ""name" (a) VALUES ({0})',
        "UPDATE t SET b = changes() WHERE a > 12",
        "INSERT INTO log VALUES ('function', seen()), ('again', seen())",
        "INSERT INTO t (a) VALUES (1{0}) ON CONFLICT (a) DO UPDATE SET b = 'upsert ' || changes()",
        "DELETE FROM t WHERE a = 2{0} RETURNING a, changes()",
        "REPLACE INTO t (a, b) VALUES (3{0}, changes())",
        'UPDATE "odd ""name" SET "changes()" = "changes()" || changes() WHERE a = {0}',
        "WITH n AS (SELECT changes() AS c) INSERT INTO log SELECT 'with', c FROM n",
        "INSERT INTO log VALUES ('nothing', (SELECT changes() FROM t WHERE a = -1))",
    ):
        print(c.execute(sql.format(turn)).fetchall(), c.execute("SELECT changes()").fetchall())
print(*c.iterdump(), sep="\\n")
"""


def test_changes_are_what_they_are(same: Record, script: Callable[[str], Path]) -> None:
    """EXPLAIN changes nothing that a view, a default, a trigger or a function can read."""
    profile = same(script(CHANGES))
    explained = {plan.statement for plan in profile.plans}
    assert "UPDATE t SET b = changes() WHERE a > ?" in explained


def programs() -> list[tuple[int, int]]:
    """(Seed, statements) of each random program."""
    return [(s, 3000) for s in range(6)] if IS_SLOW else [(s, 150) for s in range(EXAMPLES // 50)]


@pytest.mark.parametrize(("seed", "statements"), programs())
def test_random_programs(seed: int, statements: int, same: Record) -> None:
    """A program has the same output, status and files with and without recording."""
    same(RANDOM_PROGRAMS, seed, statements)
