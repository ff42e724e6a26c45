"""Measure the cost of watching a running program with `queryprof top`.

The figures are the median and the slowest queries of a program that queries all the time, and the
duration of one look for different numbers of sums.

    python benchmarks/top.py [--rounds 7]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

QUERYPROF = str(Path(sys.executable).with_name("queryprof"))
SELECTS = 100_000
WORST = 10
"""Number of slowest queries to average, because the machine causes the slowest one."""

BUSY = f"""
import sqlite3, time
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
db.executemany("INSERT INTO t VALUES (?, 0)", [(n,) for n in range(1000)])
took = []
for number in range({SELECTS}):
    start = time.perf_counter_ns()
    db.execute("SELECT b FROM t WHERE a = ?", (number % 1000,)).fetchone()
    took.append(time.perf_counter_ns() - start)
took.sort()
print(took[len(took) // 2], sum(took[-{WORST}:]) / {WORST})
"""

MANY = """
import sqlite3, sys
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
functions = {}
for number in range(int(sys.argv[1]) // 80):
    exec(compile(f"def f{number}(sql): db.execute(sql).fetchall()", __file__, "exec"), globals(), functions)
statements = [f"SELECT a AS a{number} FROM t" for number in range(80)]
for function in functions.values():
    for statement in statements:
        function(statement)
print("filled", flush=True)
while sys.stdin.read(1):
    for statement in statements:
        function(statement)
    print("more", flush=True)
"""

LOOKS = 20


def recorded(*arguments: str) -> list[str]:
    return [QUERYPROF, "run", "--no-report", "-o", "x.qprof", "program.py", *arguments]


def queries_ns(folder: str, with_top: bool) -> tuple[float, float]:
    """Return the median and the slowest queries of a program, with or without `top`."""
    Path(folder, "program.py").write_text(BUSY)
    command = [QUERYPROF, "top", "x.qprof", "--every", "200ms", "--format", "json"]
    top = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) if with_top else None
    if top:
        time.sleep(0.5)  # until it has imported its modules
    said = subprocess.run(recorded(), cwd=folder, capture_output=True, text=True, check=True)
    if top:
        top.terminate()
        top.wait()
    median, worst = map(float, said.stdout.split())
    return median, worst


def look_ms(folder: str, sums: int) -> tuple[int, float, float]:
    """Return the number of sums, and the durations of the first look and of the median look.

    The program runs during the looks.
    """
    from queryprof.region.live import ActivityReader, trace_path_filter

    Path(folder, "program.py").write_text(MANY)
    with subprocess.Popen(
        recorded(str(sums)),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin
        assert program.stdout
        program.stdout.readline()
        watch, took, found = ActivityReader(trace_path_filter(f"{folder}/x.qprof")), [], 0
        for _ in range(LOOKS):
            start = time.perf_counter()
            looked = watch.read_activity()
            took.append((time.perf_counter() - start) * 1000)
            found = max(found, sum(len(process.activities) for process in looked))
            program.stdin.write("x")
            program.stdin.flush()
            program.stdout.readline()
        program.stdin.close()
    return found, took[0], statistics.median(took[1:])


@click.command()
@click.option("--rounds", default=7, show_default=True, help="Processes of each.")
def main(rounds: int) -> None:
    """Print the cost of watching a running program."""
    with tempfile.TemporaryDirectory() as folder:
        alone, beside = [], []
        for _ in range(rounds):
            alone.append(queries_ns(folder, with_top=False))
            beside.append(queries_ns(folder, with_top=True))
        for name, at in (("the median query", 0), (f"the {WORST} worst, mean", 1)):
            without, with_top = (
                statistics.median(row[at] for row in rows) for rows in (alone, beside)
            )
            print(
                f"{name:20}  alone {without / 1000:9.2f} µs  with top {with_top / 1000:9.2f} µs"
                f"  x{with_top / without:.2f}"
            )
    for sums in (8_000, 48_000):
        with tempfile.TemporaryDirectory() as folder:
            found, first_ms, next_ms = look_ms(folder, sums)
            print(
                f"{found:>7,} sums: the first look {first_ms:6.1f} ms, those that follow"
                f" {next_ms:6.1f} ms"
            )


if __name__ == "__main__":
    main()
