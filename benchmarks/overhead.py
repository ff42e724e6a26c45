"""Compare the cost of recording with that of other tools: `make bench`.

In each round, every case runs bare and with each tool, always in a new process, as users run it.
The shortest time of each process counts. The output is the median bare time, and each tool's median
divided by it. --minima adds the ratio of the shortest times. Connections are in memory, because the
cost is most visible on the cheapest calls.

    python benchmarks/overhead.py [--rounds 9] [--case "point select"] [--tool queryprof] [--minima]
"""

from __future__ import annotations

import cProfile
import functools
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import track

ROWS = 1000
Case = Callable[[sqlite3.Connection], int]


def point_select(connection: sqlite3.Connection) -> int:
    cursor = connection.cursor()
    for number in range(400):
        cursor.execute("SELECT b FROM t WHERE a = ?", (number,))
        cursor.fetchone()
    return 400


def _find(cursor: sqlite3.Cursor, number: int) -> object:
    cursor.execute("SELECT b FROM t WHERE a = ?", (number,))
    return cursor.fetchone()


def point_select_in_a_helper(connection: sqlite3.Connection) -> int:
    cursor = connection.cursor()
    for number in range(400):
        _find(cursor, number)
    return 400


def deep_point_select(connection: sqlite3.Connection, depth: int = 20) -> int:
    return deep_point_select(connection, depth - 1) if depth else point_select(connection)


def insert(connection: sqlite3.Connection) -> int:
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    for number in range(400):
        cursor.execute("INSERT INTO t VALUES (?, ?)", (ROWS + number, number))
    connection.rollback()
    return 400


def iterate(connection: sqlite3.Connection) -> int:
    for _ in connection.execute("SELECT a, b FROM t"):
        pass
    return 1


def executemany(connection: sqlite3.Connection) -> int:
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(ROWS + i, i) for i in range(ROWS)])
    connection.rollback()
    return 1


def fetchall(connection: sqlite3.Connection) -> int:
    connection.execute("SELECT a, b FROM t").fetchall()
    return 1


def mixed_on_a_file(_: sqlite3.Connection) -> int:
    """Transactions of one write and nine reads, like a small application's."""
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(sqlite3.connect(os.path.join(directory, "mixed.db"))) as connection,
    ):
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
        for number in range(40):
            connection.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", (number, number))
            for other in range(9):
                connection.execute("SELECT b FROM t WHERE a = ?", (other,)).fetchone()
            connection.commit()
    return 40


@functools.cache
def _engine() -> Any:
    import sqlalchemy

    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.StaticPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
        rows = [(i, 2 * i) for i in range(ROWS)]
        connection.exec_driver_sql("INSERT INTO t VALUES (?, ?)", rows)
    return engine


def sqlalchemy_core(_: sqlite3.Connection) -> int:
    import sqlalchemy

    table = sqlalchemy.table("t", sqlalchemy.column("a"), sqlalchemy.column("b"))
    statement = sqlalchemy.select(table.c.b).where(table.c.a == sqlalchemy.bindparam("a"))
    with _engine().connect() as connection:
        for number in range(100):
            connection.execute(statement, {"a": number}).one()
    return 100


@functools.cache
def _apsw() -> Any:
    import apsw

    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, 2 * i) for i in range(ROWS)])
    return connection


def apsw_point_select(_: sqlite3.Connection) -> int:
    for number in range(400):
        _apsw().execute("SELECT b FROM t WHERE a = ?", (number,)).fetchone()
    return 400


def apsw_on_one_cursor(_: sqlite3.Connection) -> int:
    cursor = _apsw().cursor()
    for number in range(400):
        cursor.execute("SELECT b FROM t WHERE a = ?", (number,)).fetchone()
    return 400


def apsw_rows(_: sqlite3.Connection) -> int:
    for _row in _apsw().execute("SELECT a, b FROM t"):
        pass
    return 1


CASES: dict[str, Case] = {
    "point select by primary key": point_select,
    "the same in a helper function": point_select_in_a_helper,
    "the same, 20 frames deeper": deep_point_select,
    "insert in a transaction": insert,
    "iteration of 1,000 rows": iterate,
    "executemany of 1,000 rows": executemany,
    "fetchall of 1,000 rows": fetchall,
    "transactions of 10 statements on a file": mixed_on_a_file,
    "SQLAlchemy Core, select by primary key": sqlalchemy_core,
    "APSW, point select": apsw_point_select,
    "APSW, point select on one cursor": apsw_on_one_cursor,
    "APSW, iteration of 1,000 rows": apsw_rows,
}
OF_OTHER_DRIVERS = {name for name in CASES if name.startswith(("APSW", "SQLAlchemy"))}
"""Cases that the other tools here do not measure."""


@contextmanager
def bare() -> Iterator[sqlite3.Connection]:
    with _opened(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        yield connection


@contextmanager
def queryprof() -> Iterator[sqlite3.Connection]:
    """Record to a trace from the start of the process to its end, like a program."""
    from queryprof import install, uninstall

    directory = tempfile.mkdtemp()
    install(os.path.join(directory, "bench.qprof"))
    try:
        with bare() as connection:
            yield connection
    finally:
        uninstall()
        shutil.rmtree(directory)


@contextmanager
def python_trace_callback() -> Iterator[sqlite3.Connection]:
    texts: dict[str, int] = {}

    def callback(text: str) -> None:
        texts[text] = texts.get(text, 0) + 1

    with bare() as connection:
        connection.set_trace_callback(callback)
        yield connection


class TimedCursor(sqlite3.Cursor):
    """The usual wrapper: a subclass that times execute."""

    spent_ns = 0

    def execute(self, *arguments: object) -> TimedCursor:
        started = time.perf_counter_ns()
        try:
            return super().execute(*arguments)  # type: ignore[arg-type,return-value]
        finally:
            TimedCursor.spent_ns += time.perf_counter_ns() - started

    def fetchone(self) -> object:
        started = time.perf_counter_ns()
        try:
            return super().fetchone()
        finally:
            TimedCursor.spent_ns += time.perf_counter_ns() - started

    def __next__(self) -> object:
        started = time.perf_counter_ns()
        try:
            return super().__next__()
        finally:
            TimedCursor.spent_ns += time.perf_counter_ns() - started


class TimedConnection(sqlite3.Connection):
    """A connection whose cursors are timed."""

    def cursor(self, factory: type[sqlite3.Cursor] = TimedCursor) -> sqlite3.Cursor:  # type: ignore[override]
        return super().cursor(factory)

    def execute(self, *arguments: object) -> sqlite3.Cursor:
        return self.cursor().execute(*arguments)  # type: ignore[arg-type]


@contextmanager
def python_subclass() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=TimedConnection)
    with _opened(connection) as opened:
        yield opened


@contextmanager
def c_profile() -> Iterator[sqlite3.Connection]:
    profiler = cProfile.Profile()
    with bare() as connection:
        profiler.enable()
        try:
            yield connection
        finally:
            profiler.disable()


@contextmanager
def opentelemetry() -> Iterator[sqlite3.Connection]:
    from opentelemetry.instrumentation.sqlite3 import SQLite3Instrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:  # noqa: ARG002
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Nowhere()))
    with bare() as connection:
        yield SQLite3Instrumentor().instrument_connection(connection, tracer_provider=provider)


TOOLS = {
    "bare": bare,
    "queryprof": queryprof,
    "trace callback": python_trace_callback,
    "subclass": python_subclass,
    "cProfile": c_profile,
    "OpenTelemetry": opentelemetry,
}


@contextmanager
def _opened(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, 2 * i) for i in range(ROWS)])
    try:
        yield connection
    finally:
        connection.close()


MIN_REPEAT_S = 0.4
"""Minimum duration for which a process repeats its case, after the first run."""


def shortest_ns(case: str, tool: str) -> float:
    """Return the shortest average time of a call, over the repeats of a case."""
    with TOOLS[tool]() as connection:
        CASES[case](connection)
        shortest = float("inf")
        until = time.perf_counter() + MIN_REPEAT_S
        while time.perf_counter() < until:
            started = time.perf_counter_ns()
            calls = CASES[case](connection)
            shortest = min(shortest, (time.perf_counter_ns() - started) / calls)
    return shortest


def in_a_process(case: str, tool: str) -> float:
    """Run `shortest_ns` in a new process."""
    command = [sys.executable, __file__, "--side", case, tool]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(cases: list[str], tools: list[str], rounds: int) -> dict[tuple[str, str], list[float]]:
    """Return the times of all rounds in ns by (case, tool). The tools alternate within a round."""
    times: dict[tuple[str, str], list[float]] = {}
    for _ in track(range(rounds), console=Console(stderr=True)):
        for case in cases:
            for tool in tools_of(case, tools):
                times.setdefault((case, tool), []).append(in_a_process(case, tool))
    return times


def tools_of(case: str, tools: list[str]) -> list[str]:
    """Return the tools that measure a case."""
    return [tool for tool in tools if case not in OF_OTHER_DRIVERS or tool in ("bare", "queryprof")]


def ratio(times: dict[tuple[str, str], list[float]], case: str, tool: str, minima: bool) -> str:
    """Return the ratio of a case's time with a tool to its bare time."""
    ours, bare = times.get((case, tool)), times[case, "bare"]
    if not ours:
        return ""
    shown = f"x{statistics.median(ours) / statistics.median(bare):.2f}"
    return f"{shown} (x{min(ours) / min(bare):.2f})" if minima else shown


@click.command()
@click.option("--rounds", default=9, show_default=True)
@click.option("--case", "chosen_case", help="Only the cases that contain this.")
@click.option("--tool", "chosen_tool", help="Only bare and this tool.")
@click.option("--minima", is_flag=True, help="The shortest of all to each other, too.")
@click.option("--side", nargs=2, metavar="CASE TOOL", help="Measure one side in this process.")
def main(
    rounds: int,
    chosen_case: str | None,
    chosen_tool: str | None,
    minima: bool,
    side: tuple[str, str] | None,
) -> None:
    """Measure, and print a Markdown table."""
    if side:
        click.echo(shortest_ns(*side))
        return
    cases = [case for case in CASES if not chosen_case or chosen_case in case]
    tools = [tool for tool in TOOLS if not chosen_tool or tool in ("bare", chosen_tool)]
    times = measure(cases, tools, rounds)
    print(f"CPython {platform.python_version()}, {platform.machine()}\n")
    print("| | bare |", " | ".join(tools[1:]), "|")
    print("|---|" + "---:|" * len(tools))
    for case in cases:
        bare_ns = statistics.median(times[case, "bare"])
        ratios = [ratio(times, case, tool, minima) for tool in tools[1:]]
        shown = f"{bare_ns:,.0f} ns" if bare_ns < 10_000 else f"{bare_ns / 1000:,.1f} µs"
        print(f"| {case} | {shown} |", " | ".join(ratios), "|")


if __name__ == "__main__":
    main()
