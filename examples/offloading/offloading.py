"""Measure which kind of work is worth moving off an event loop, in all eight configurations.

File, compute and network work are each done on the loop or in threads. Every run is a separate
process (one_run.py) on new databases. The configurations have another random order in each round,
so a change of the machine's speed affects all of them equally.

    python offloading.py [--rounds 5] [--driver threads|aiosqlite] [--loop asyncio|twisted] ...
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
from itertools import combinations
from pathlib import Path

from effects import Configuration, effects_of
from one_run import DRIVERS, LOOPS, Figures
from pairs import KINDS, ROWS_AN_ANSWER, fill
from tables import LAGS, TIMES, Results, chart, comparison, effects_table, table

CONFIGURATIONS: tuple[Configuration, ...] = tuple(
    frozenset(off) for count in range(len(KINDS) + 1) for off in combinations(KINDS, count)
)
RUN_TIMEOUT_S = 300


class RunError(Exception):
    """A run failed. The message is the last line of its output."""


def positive(text: str) -> int:
    """An option's value: 1 or more."""
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def milliseconds(text: str) -> float:
    """An option's value: 0 or more."""
    if not (value := float(text)) >= 0:
        raise argparse.ArgumentTypeError(f"{text} is not 0 or more")
    return value


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description="Eight configurations of work on and off the event loop.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--rounds", type=positive, default=5, help="runs of each configuration")
    add("--pairs", type=positive, default=6, help="clients, each with a server")
    add("--requests", type=positive, default=10, help="requests of each client")
    add("--rows", type=positive, default=40_000, help="rows in each database")
    add("--driver", choices=DRIVERS, default="threads", help="what takes file work off the loop")
    add("--loop", choices=LOOPS, default="asyncio", help="the event loop")
    add("--slow-disk", type=milliseconds, default=0.0, metavar="MS", help="added to database calls")
    chosen = parser.parse_args()
    if chosen.rows < (least := chosen.requests * ROWS_AN_ANSWER):
        parser.error(f"--rows {chosen.rows}: {chosen.requests} different requests need {least}")
    if chosen.loop == "twisted" and chosen.driver == "aiosqlite":
        parser.error("--driver aiosqlite needs asyncio: choose --loop asyncio")
    for package in {chosen.loop, chosen.driver} & {"twisted", "aiosqlite"}:
        if importlib.util.find_spec(package) is None:
            parser.error(f"{package} is not installed: python -m pip install {package}")
    return chosen


def run(off: Configuration, template: Path, chosen: argparse.Namespace) -> Figures:
    """Run once in a separate process, on copies of the template."""
    with tempfile.TemporaryDirectory(dir=template.parent) as folder:
        databases = [Path(folder) / f"pair{number}.db" for number in range(chosen.pairs)]
        for database in databases:
            shutil.copyfile(template, database)
        command = [
            sys.executable,
            Path(__file__).with_name("one_run.py"),
            *databases,
            "--off",
            *off,
            "--requests",
            str(chosen.requests),
            "--rows",
            str(chosen.rows),
            "--driver",
            chosen.driver,
            "--loop",
            chosen.loop,
            "--slow-disk-s",
            str(chosen.slow_disk / 1000),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise RunError(f"not finished after {RUN_TIMEOUT_S} s: ask for less") from None
    if done.returncode:
        raise RunError((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
    return Figures(**json.loads(done.stdout.splitlines()[-1]))


def run_by_turns(chosen: argparse.Namespace) -> Results:
    """Run all rounds. Each round has every configuration once."""
    results: dict[Configuration, list[Figures]] = {off: [] for off in CONFIGURATIONS}
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.db"
        fill(template, chosen.rows)
        for number in range(chosen.rounds):
            order = random.Random(number).sample(CONFIGURATIONS, len(CONFIGURATIONS))  # noqa: S311
            for off in order:
                results[off].append(run(off, template, chosen))
    return results


def show(results: Results, chosen: argparse.Namespace) -> None:
    """Yield the tables, the chart and the comparison."""
    file_work = f"file work off the loop: {chosen.driver}"
    slow = f", every database call {chosen.slow_disk:g} ms longer" if chosen.slow_disk else ""
    print(f"{chosen.loop}, {file_work}{slow}")
    print(f"{chosen.pairs} pairs, {chosen.requests} requests each, {chosen.rows:,} rows, ", end="")
    print(f"rounds: {chosen.rounds}; mean ± 95% interval\n")
    print(*table(results, TIMES), sep="\n", end="\n\n")
    print(*table(results, LAGS), sep="\n", end="\n\n")
    print("Total time, and its change (%) from that with everything on the loop\n")
    print(*chart(results), sep="\n", end="\n\n")
    print("Effects of moving work off the loop, on the total time\n")
    totals_s = {off: [figures.total_s for figures in runs] for off, runs in results.items()}
    print(*effects_table(effects_of(totals_s, KINDS)), sep="\n", end="\n\n")
    print(textwrap.fill(comparison(results), 80))


def main() -> None:
    """Run everything and print the results."""
    chosen = options()
    try:
        show(run_by_turns(chosen), chosen)
    except RunError as error:
        print(f"a run failed: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
