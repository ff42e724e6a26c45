"""Times: against an independent clock, and never counted twice."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter

import queryprof
from conftest import only

SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
    " SELECT count(*) FROM n"
)
CLOCKS_AGREE = 1.002
"""The core's clock and Python's differ by less than this."""

SLOW_STATEMENT = SLOW.replace("1", "?").replace("60000", "?")


def test_totals_lie_between_an_independent_clock_inside_and_outside() -> None:
    """SQLite's first and last row are inside of the total, and perf_counter around the calls
    outside.

    Both bounds hold on a machine of any speed, however often the calls are interrupted.
    """
    connection = sqlite3.connect(":memory:")
    rows_ns: list[int] = []
    connection.create_function("clock", 0, lambda: rows_ns.append(time.perf_counter_ns()))
    cursor = connection.cursor()
    for _ in range(5):
        rows_ns.clear()
        with queryprof.profile() as recording:
            started_ns = time.perf_counter_ns()
            cursor.execute(SLOW.replace("count(*)", "count(clock())"))
            cursor.fetchone()
            outside_ns = time.perf_counter_ns() - started_ns
        total_ns = sum(a.total_ns for a in recording.profile.aggregates)
        assert len(rows_ns) == 60_000
        assert rows_ns[-1] - rows_ns[0] <= total_ns * CLOCKS_AGREE
        assert total_ns <= outside_ns * CLOCKS_AGREE
    connection.close()


def test_time_of_fetches_belongs_to_the_statement_and_line_that_executed() -> None:
    """The first row is made by execute, the others by the fetches: both count for the statement."""
    connection = sqlite3.connect(":memory:")
    inside_ns: Counter[str] = Counter()
    phase = "execute"

    def work() -> None:
        start_ns = time.perf_counter_ns()
        time.sleep(0.001)
        inside_ns[phase] += time.perf_counter_ns() - start_ns

    connection.create_function("work", 0, work)
    with queryprof.profile() as recording:
        started_ns = time.perf_counter_ns()
        rows = connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)"
            " SELECT i, work() FROM n"
        )
        executed_ns = time.perf_counter_ns()
        phase = "fetchall"
        assert len(rows.fetchall()) == 30
        fetched_ns = time.perf_counter_ns()
    connection.close()
    (fetch,) = [a for a in recording.profile.aggregates if a.operation == "fetchall"]
    (execute,) = [a for a in recording.profile.aggregates if a.operation == "execute"]
    assert fetch.path == execute.path
    assert inside_ns["execute"] <= execute.total_ns * CLOCKS_AGREE
    assert execute.total_ns <= (executed_ns - started_ns) * CLOCKS_AGREE
    assert 29_000_000 <= inside_ns["fetchall"] <= fetch.total_ns * CLOCKS_AGREE
    assert fetch.total_ns <= (fetched_ns - executed_ns) * CLOCKS_AGREE
    assert execute.execution_max_ns >= fetch.total_ns


def test_queries_inside_a_sql_function_do_not_count_twice() -> None:
    """The outer statement's self time excludes queries of a user-defined function."""
    connection = sqlite3.connect(":memory:")
    other = sqlite3.connect(":memory:")
    connection.create_function("slow", 0, lambda: other.execute(SLOW).fetchone()[0])
    with queryprof.profile() as recording:
        started_ns = time.perf_counter_ns()
        connection.execute("SELECT slow()").fetchone()
        outside_ns = time.perf_counter_ns() - started_ns
    connection.close()
    other.close()
    outer = [a for a in recording.profile.aggregates if a.statement == "SELECT slow()"]
    inner = [a for a in recording.profile.aggregates if a.statement != "SELECT slow()"]
    inner_ns = sum(a.total_ns for a in inner)
    assert sum(a.count for a in inner) == 2
    assert sum(a.total_ns for a in outer) > inner_ns
    assert sum(a.self_ns for a in outer) <= outside_ns * CLOCKS_AGREE - inner_ns


def test_the_callers_own_time_between_rows_does_not_count() -> None:
    """The loop's work with a row does not count for the query."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(20)])
    own_ns = 0
    with queryprof.profile() as recording:
        started_ns = time.perf_counter_ns()
        for _ in connection.execute("SELECT a FROM t"):
            own_start_ns = time.perf_counter_ns()
            time.sleep(0.001)
            own_ns += time.perf_counter_ns() - own_start_ns
        outside_ns = time.perf_counter_ns() - started_ns
    connection.close()
    rows = only(recording.profile, "SELECT a FROM t", "next")
    assert rows.count == 21
    assert rows.rows == 20
    assert rows.total_ns <= outside_ns * CLOCKS_AGREE - own_ns
