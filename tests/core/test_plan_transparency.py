"""Plan requests: the program notices nothing, and they cost little."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from core.plan_recordings import SELECT, draining, trees, with_table

import queryprof
from queryprof.core import _core
from queryprof.region.changes import ChangeReader
from queryprof.region.descriptions import Descriptions


def observed(setup: Callable[[sqlite3.Connection, list[object]], None]) -> list[object]:
    """Return what a program can observe of its connection while it works."""
    seen: list[object] = []
    connection = sqlite3.connect(":memory:", isolation_level=None)
    setup(connection, seen)
    for sql in (
        "CREATE TABLE t (a PRIMARY KEY, b)",
        "INSERT INTO t VALUES (1, 2), (3, 4)",
        "UPDATE t SET b = 5 WHERE a < 9",
        "SELECT changes(), total_changes(), last_insert_rowid()",
        "INSERT INTO t SELECT a + 10, changes() FROM t",
        "BEGIN",
        "DELETE FROM t WHERE a = 1",
        "SELECT changes()",
        "SELECT * FROM t ORDER BY b",
        "EXPLAIN SELECT 1",
        "EXPLAIN QUERY PLAN SELECT * FROM t",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "SELECT * FROM nowhere",
        "INSERT INTO t VALUES (3, 3)",
        "SELECT changes()",
        "VALUES (1)",
        "COMMIT",
        "VACUUM",
        "PRAGMA user_version",
    ):
        try:
            seen.append(connection.execute(sql).fetchall())
        except sqlite3.Error as error:
            seen.append(repr(error))
        seen.append((connection.in_transaction, connection.total_changes))
    connection.close()
    return seen


def with_authorizer(connection: sqlite3.Connection, seen: list[object]) -> None:
    def authorize(*arguments: object) -> int:
        # VACUUM's own database has a random name since SQLite 3.53.
        seen.append([re.sub("^vacuum_.*", "vacuum_db", str(one)) for one in arguments])
        return sqlite3.SQLITE_OK

    connection.set_authorizer(authorize)


def with_trace(connection: sqlite3.Connection, seen: list[object]) -> None:
    connection.set_trace_callback(seen.append)


def with_progress(connection: sqlite3.Connection, seen: list[object]) -> None:
    connection.set_progress_handler(lambda: seen.append("progress"), 1)


def with_row_factory(connection: sqlite3.Connection, seen: list[object]) -> None:
    connection.row_factory = lambda cursor, row: seen.append((len(cursor.description), row))
    connection.text_factory = bytes


@pytest.mark.parametrize(
    "setup",
    [lambda *_: None, with_authorizer, with_trace, with_progress, with_row_factory],
    ids=["plain", "authorizer", "trace", "progress", "factories"],
)
def test_the_program_sees_nothing_of_it(
    setup: Callable[[sqlite3.Connection, list[object]], None],
) -> None:
    """Callbacks, changes(), transactions and errors are as without recording."""
    bare = observed(setup)
    with draining():
        assert observed(setup) == bare


def test_a_failed_binding_leaves_changes_alone() -> None:
    """The statement never starts, so no plan is requested."""
    with draining():
        connection = with_table()
        connection.execute("INSERT INTO t VALUES (1, 2)")
        with pytest.raises(sqlite3.Error):
            connection.execute("UPDATE t SET b = ?")
        assert connection.execute("SELECT changes()").fetchone() == (1,)
        connection.close()


LOCKING = """
import sqlite3, sys, time
c = sqlite3.connect("locked.db", isolation_level=None)
c.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
"""


def test_a_locked_database_is_waited_for_once() -> None:
    """SQLite calls the program's busy handler as often as without a recording."""
    apsw = pytest.importorskip("apsw")
    with_table("locked.db").close()
    asked: list[int] = []

    def waits(times: int) -> bool:
        asked.append(times)
        return times < 3

    with subprocess.Popen(
        [sys.executable, "-c", LOCKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "locked\n"
        for is_recorded in (False, True):
            with queryprof.profile() if is_recorded else nullcontext() as recording:
                connection = apsw.Connection("locked.db")
                connection.set_busy_handler(waits)
                with pytest.raises(apsw.BusyError):
                    connection.execute(SELECT, (1,))
                connection.close()
            assert asked == [0, 1, 2, 3]
            asked.clear()
        holder.communicate("\n")
    assert recording
    (row,) = [a for a in recording.profile.aggregates if a.operation == "execute"]
    assert (row.count, row.errors) == (1, 1)


def test_asking_is_not_in_the_statements_time() -> None:
    """SQLite finds the plan of a large join twice: for the program and for queryprof. The
    statement's time has the first one only.

    Processor time of a run without queryprof is what finding the plan takes at least. Whatever else
    the machine does makes both times longer, not shorter.
    """
    tables = [f"t{number}" for number in range(24)]
    joined = f"SELECT count(*) FROM {', '.join(tables)} WHERE " + " AND ".join(
        f"{a}.x = {b}.y" for a in tables for b in tables if a < b
    )

    def ran_s(clock: Callable[[], float]) -> float:
        connection = sqlite3.connect(":memory:")
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (x, y)")
        started_s = clock()
        connection.execute(joined).fetchall()
        elapsed_s = clock() - started_s
        connection.close()
        return elapsed_s

    bare_s = [ran_s(time.thread_time) for _ in range(10)]
    with draining():
        changes, descriptions = ChangeReader(), Descriptions()
        elapsed_s = ran_s(time.perf_counter)
        part = changes.take(with_plans=True)
        assert trees(descriptions.plans(part), _core.normal_form(joined))
        (recorded_s,) = [
            row.total_ns / 1e9
            for row in descriptions.aggregates(part)
            if (row.statement[:6], row.operation) == ("SELECT", "execute")
        ]
    bare_s += [ran_s(time.thread_time) for _ in range(10)]
    least_s = min(bare_s) / 4  # a processor's speed changes by less, beside other work
    assert least_s < recorded_s < elapsed_s - least_s


@pytest.mark.once
def test_what_asking_may_cost_is_bounded() -> None:
    """Beyond 1/64 of the time, and beyond 2,048 plans, none is requested, and the report says how
    often.
    """
    connection = with_table()
    with queryprof.profile() as recording:
        for number in range(15_000):
            connection.execute(f"SELECT a AS c{number} FROM t")
    connection.close()
    (process,) = recording.profile.processes
    assert process.unasked_plans > 0
    plans = len(recording.profile.plans)
    assert 100 < plans <= 2048
