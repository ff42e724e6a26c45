"""Measure the cost of a recorded call as a program grows.

The output is the CPU time of a call, bare and recorded, for increasing numbers of call sites,
statements, connections, and consecutive threads. Each measurement is a process. Bare and recorded
processes alternate, and the smallest of each counts. The cost of a new site or statement is
included: CASES has the number of calls for each.

    python benchmarks/growth.py [--rounds 5]
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import click

CASES = (
    ("sites", 100, 1000),
    ("sites", 1000, 100),
    ("sites", 10_000, 30),
    ("sites", 100_000, 3),
    ("statements", 100, 1000),
    ("statements", 1000, 100),
    ("statements", 10_000, 30),
    ("connections", 100, 100),
    ("connections", 2000, 20),
    ("threads", 2000, 3),
)
"""The kind, the number of objects, and the number of calls for each."""

LINES_OF_A_FUNCTION = 500
SELECT = "SELECT b FROM t WHERE a = ?"


def filled() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, i) for i in range(100)])
    return connection


def of_sites(count: int, times: int) -> Callable[[], None]:
    """Functions of hundreds of lines, each line a call site."""
    connection, functions = filled(), []
    for start in range(0, count, LINES_OF_A_FUNCTION):
        lines = min(LINES_OF_A_FUNCTION, count - start)
        body = f" c.execute({SELECT!r}, (5,)).fetchone()\n" * lines
        names: dict[str, Callable[[sqlite3.Connection], None]] = {}
        exec(compile(f"def f(c):\n{body}", str(Path.cwd() / f"f{start}.py"), "exec"), names)
        functions.append(names["f"])

    def call() -> None:
        for _ in range(times):
            for function in functions:
                function(connection)

    return call


def of_statements(count: int, times: int) -> Callable[[], None]:
    """Different texts at one call site."""
    connection = filled()
    texts = [SELECT.replace("b", f"b AS _{i:b}".translate(LETTERS), 1) for i in range(count)]

    def call() -> None:
        for _ in range(times):
            for text in texts:
                connection.execute(text, (5,)).fetchone()

    return call


LETTERS = str.maketrans("01", "ab")
"""Digits to letters: only names without digits remain unchanged in the recording."""


def of_connections(count: int, times: int) -> Callable[[], None]:
    """Connections that are open at once."""
    connections = [filled() for _ in range(count)]

    def call() -> None:
        for _ in range(times):
            for connection in connections:
                connection.execute(SELECT, (5,)).fetchone()

    return call


def of_threads(count: int, times: int) -> Callable[[], None]:
    """Threads, one after the other."""
    connection = filled()

    def work() -> None:
        for _ in range(times):
            connection.execute(SELECT, (5,)).fetchone()

    def call() -> None:
        for _ in range(count):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    return call


MAKERS = {
    "sites": of_sites,
    "statements": of_statements,
    "connections": of_connections,
    "threads": of_threads,
}


def one_ns(kind: str, count: int, times: int, trace: str) -> float:
    """Return the CPU time of a call in this process, recorded if `trace` is a path."""
    if trace:
        from queryprof import install

        install(trace)
    call = MAKERS[kind](count, times)
    start_ns = time.process_time_ns()
    call()
    return (time.process_time_ns() - start_ns) / (count * times)


def measured_ns(kind: str, count: int, times: int, trace: str) -> float:
    command = (sys.executable, __file__, "--one", kind, str(count), str(times), trace)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(trace).parent if trace else None,
    )
    return float(done.stdout)


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Processes of each.")
@click.option("--one", nargs=4, type=(str, int, int, str), help="Measures once.")
def main(rounds: int, one: tuple[str, int, int, str] | None) -> None:
    """Print the CPU time of a call, bare and recorded, as a program grows."""
    if one:
        print(one_ns(*one))
        return
    print(f"{'':24}{'calls each':>11}{'bare':>10}{'recorded':>10}{'more':>10}")
    for kind, count, times in CASES:
        found: dict[str, list[float]] = {"": [], "x": []}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as directory:
                for way, figures in found.items():
                    trace = f"{directory}/{way}.qprof" if way else ""
                    figures.append(measured_ns(kind, count, times, trace))
        bare, recorded = min(found[""]), min(found["x"])
        print(
            f"{count:>9,} {kind:<14}{times:>11,}{bare:>7,.0f} ns{recorded:>7,.0f} ns"
            f"{recorded - bare:>+7,.0f} ns",
            flush=True,
        )


if __name__ == "__main__":
    main()
