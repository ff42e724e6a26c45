"""Times: against an independent clock, and never counted twice."""

from __future__ import annotations

import sqlite3
import statistics
import time

import queryprof
from conftest import only

SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
    " SELECT count(*) FROM n"
)
SLOW_STATEMENT = SLOW.replace("1", "?").replace("60000", "?")


def test_totals_agree_with_an_independent_clock() -> None:
    """Over operations longer than 1 ms, total times are within 2% of perf_counter around them."""
    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor()
    ratios = []
    for _ in range(5):
        outside_ns = 0
        with queryprof.profile() as recording:
            for _ in range(10):
                started = time.perf_counter_ns()
                cursor.execute(SLOW)
                cursor.fetchone()
                outside_ns += time.perf_counter_ns() - started
        inside_ns = sum(a.total_ns for a in recording.profile.aggregates)
        ratios.append(inside_ns / outside_ns)
    connection.close()
    # An interruption between the two clocks is in the outer one alone.
    assert max(ratios) <= 1.02
    assert statistics.median(ratios) >= 0.98
    assert outside_ns > 10 * 1_000_000


def test_time_of_fetches_belongs_to_the_statement_and_line_that_executed() -> None:
    """Sorting happens before the first row, scanning in the fetches: both are the statement's."""
    connection = sqlite3.connect(":memory:")
    with queryprof.profile() as recording:
        rows = connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)"
            " SELECT i FROM n"
        )
        rows.fetchall()
    connection.close()
    fetches = [a for a in recording.profile.aggregates if a.operation == "fetchall"]
    executes = [a for a in recording.profile.aggregates if a.operation == "execute"]
    assert len(fetches) == len(executes) == 1
    assert fetches[0].path == executes[0].path
    assert fetches[0].total_ns > 5 * executes[0].total_ns
    assert executes[0].execution_max_ns >= fetches[0].total_ns


def test_queries_inside_a_sql_function_do_not_count_twice() -> None:
    """The outer statement's self time leaves out what a user-defined function asks."""
    connection = sqlite3.connect(":memory:")
    other = sqlite3.connect(":memory:")
    connection.create_function("slow", 0, lambda: other.execute(SLOW).fetchone()[0])
    with queryprof.profile() as recording:
        connection.execute("SELECT slow()").fetchone()
    connection.close()
    other.close()
    outer = [a for a in recording.profile.aggregates if a.statement == "SELECT slow()"]
    inner = [a for a in recording.profile.aggregates if a.statement != "SELECT slow()"]
    inner_ns = sum(a.total_ns for a in inner)
    assert sum(a.count for a in inner) == 2
    assert sum(a.total_ns for a in outer) > inner_ns
    assert sum(a.self_ns for a in outer) < 0.2 * inner_ns


def test_the_callers_own_time_between_rows_does_not_count() -> None:
    """What the loop does with a row is not the query's time."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(20)])
    with queryprof.profile() as recording:
        for _ in connection.execute("SELECT a FROM t"):
            until = time.perf_counter_ns() + 1_000_000
            while time.perf_counter_ns() < until:
                pass
    connection.close()
    rows = only(recording.profile, "SELECT a FROM t", "next")
    assert rows.count == 21
    assert rows.rows == 20
    assert rows.total_ns < 10_000_000
