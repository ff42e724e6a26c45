"""Count the core's instructions for a call and for a step with callgrind: `make bench-check`.

Counts do not depend on the load of the machine, so a change of 1% is visible. Each case runs with
two numbers of rounds, in separate processes. The difference, divided by the additional rounds, is
the cost of one round. Only instructions of the core's own library count
(https://valgrind.org/docs/manual/cl-format.html). For a whole task, all instructions of the process
count, recorded and bare.

The counts depend on processor, compiler and Python. benchmarks/instructions.json has the expected
counts for each combination. Exit status 1: a count has grown by more than 1%. Exit status 2: there
are no expected counts for this combination.

    python benchmarks/instructions.py [--keep]
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

KEPT = Path(__file__).with_suffix(".json")
LIMIT = 1.01
ROUNDS = (2000, 6000)
REPEATS = 3
"""Repeats of a count. The lowest counts, because some repeats include work done once a second."""

START = "import sys\nrounds = int(sys.argv[1])\nimport queryprof\nqueryprof.install('x.qprof')\n"
CONNECT = """import sqlite3
cursor = sqlite3.connect(":memory:").cursor()
cursor.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
cursor.executemany("INSERT INTO t VALUES (?, ?)", [(i, i) for i in range(100)])
"""
RECORDED = "import queryprof\nqueryprof.install('x.qprof')\n"
CASES = {
    "execute and fetch": (
        f"""{START}{CONNECT}
for i in range(rounds):
    cursor.execute("SELECT b FROM t WHERE a = ?", (i % 100,)).fetchone()
"""
    ),
    "fetch of one row": (
        f"""{START}{CONNECT}
cursor.execute("SELECT 1 FROM t, t AS u LIMIT ?", (rounds,))
while cursor.fetchone():
    pass
"""
    ),
    "execute in a span": (
        f"""{START}{CONNECT}
for i in range(rounds):
    with queryprof.span("work"):
        cursor.execute("SELECT b FROM t WHERE a = ?", (i % 100,))
"""
    ),
    "step of a loop": (
        f"""{START}
import asyncio
async def main():
    for i in range(rounds):
        await asyncio.sleep(0)
asyncio.run(main())
"""
    ),
}


TASKS = """import sys
rounds = int(sys.argv[1])
import asyncio{loop}
async def work():
    pass
async def main():
    for i in range(rounds):
        await asyncio.create_task(work())
asyncio.Runner({factory}).run(main())
"""
WHOLE = {
    "task of asyncio": TASKS.format(loop="", factory=""),
    "task of uvloop": TASKS.format(loop=", uvloop", factory="loop_factory=uvloop.new_event_loop"),
}
"""Programs whose instructions are all counted, bare and recorded.

The figure is their ratio. A wrapper may replace a slower function of the library, so the core's own
count is not enough.
"""


def of_core(profile: str) -> int:
    """Return the number of instructions of the core's own code in a callgrind profile."""
    total, is_core, names = 0, False, {}
    lines = iter(profile.splitlines())
    for line in lines:
        if found := re.match(r"ob=\((\d+)\)(?: (.*))?", line):
            number, path = found.groups()
            names.setdefault(number, path)
            is_core = "/queryprof/core/_core." in (names[number] or "")
        elif found := re.match(r"cob=\((\d+)\) (.*)", line):
            names.setdefault(*found.groups())
        elif line.startswith("calls="):
            next(lines)  # the cost of the called functions
        elif is_core and (found := re.match(r"[+*\d-]\S* (\d+)", line)):
            total += int(found[1])
    return total


def of_all(profile: str) -> int:
    """Return the number of all instructions in a callgrind profile."""
    found = re.search(r"^(?:summary|totals): (\d+)", profile, re.MULTILINE)
    if not found:
        raise click.ClickException("callgrind has written no sum")
    return int(found[1])


def difference(source: str, counted: Callable[[str], int]) -> float:
    """Return the instructions of one round."""
    few, many = (min(instructions(source, n, counted) for _ in range(REPEATS)) for n in ROUNDS)
    return (many - few) / (ROUNDS[1] - ROUNDS[0])


def instructions(source: str, rounds: int, counted: Callable[[str], int]) -> int:
    """Return the count from the profile of a program with this number of rounds."""
    with tempfile.TemporaryDirectory() as directory:
        command = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=out",
            sys.executable,
            "-c",
            source,
            str(rounds),
        ]
        # the same addresses and hashes in every run
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"}
        result = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
        if result.returncode:
            raise click.ClickException(f"valgrind failed:\n{result.stderr}")
        return counted(Path(directory, "out").read_text())


def here() -> str:
    """Return the processor, compiler and Python."""
    compiler = os.environ.get("CC", "gcc")
    version = subprocess.run(
        [compiler, "-dumpfullversion"], capture_output=True, text=True, check=True
    )
    python = ".".join(platform.python_version_tuple()[:2])
    return f"{platform.machine()}, {compiler} {version.stdout.strip()}, Python {python}"


def show(name: str, figure: float, unit: str, was: float | None) -> None:
    change = f"  was {was:8g}  {figure / was - 1:+.1%}" if was else ""
    click.echo(f"{name:20} {figure:8g} {unit}{change}")


@click.command()
@click.option("--keep", is_flag=True, help="Keep the counts as those to compare with.")
def main(keep: bool) -> None:
    """Count, print, and compare with the expected counts."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    before = kept.get(here())
    if not before and not keep:
        click.echo(
            f"no counts are kept for {here()}: run this with --keep on the version before", err=True
        )
        sys.exit(2)
    counts: dict[str, float] = {}
    for name, source in CASES.items():
        counts[name] = round(difference(source, of_core), 1)
        show(name, counts[name], "instructions", (before or {}).get(name))
    for name, source in WHOLE.items():
        bare, recorded = (difference(one, of_all) for one in (source, RECORDED + source))
        counts[name] = round(recorded / bare, 3)
        show(name, counts[name], "of bare", (before or {}).get(name))
    grown = any(counts[name] > was * LIMIT for name, was in (before or {}).items())
    if keep:
        KEPT.write_text(json.dumps({**kept, here(): counts}, indent=2) + "\n")
    elif grown:
        click.echo("more than a hundredth above what is kept", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
