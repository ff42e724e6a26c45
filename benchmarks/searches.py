"""Compare three searches for a number of workers, on real replays of one writer and many readers.

First, each number of workers runs in its own intervals. The best mean is the most that a search can
find. Then each search runs many times, alternating with the others. Its regret is the loss, in
percent, of the number that it chooses: 0% is the best. The linear search and hill climbing are
published. The steady search is queryprof's. `make searches` takes half an hour.

    python benchmarks/searches.py [--runs 20] [--most 6] [--interval 0.2] [--processes]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import click
from worker_searches import HillClimbing, LinearSearch

from queryprof.replay.replaying import Replay, ReplaySetting, load_replay, play_on_copy
from queryprof.replay.workers import search_workers
from queryprof.statistics.worker_search import SteadyWorkerSearch, WorkerSearch

QUERYPROF = Path(sys.executable).with_name("queryprof")
SEARCHES: dict[str, type[WorkerSearch]] = {
    "linear": LinearSearch,
    "hill-climbing": HillClimbing,
    "steady": SteadyWorkerSearch,
}
MODES = ("wal", "delete")
FIXED_INTERVALS = 12
MAX_INTERVALS = 40

PROGRAM = """
import random, sqlite3, sys
db, draw = sqlite3.connect(sys.argv[1]), random.Random(1)
for turn in range(300):
    for _ in range(12):
        low = draw.randrange(19_000)
        db.execute("SELECT count(*), sum(price) FROM item WHERE id BETWEEN ? AND ?", (low, low + 400)).fetchall()
    db.execute("UPDATE item SET price = price + 1 WHERE id = ?", (draw.randrange(20_000),))
    db.commit()
"""

FILL = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL);
WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c LIMIT 20000)
INSERT INTO item SELECT x, 'item ' || x, x * 1.5 FROM c;
"""


@click.command()
@click.option("--runs", default=20, show_default=True)
@click.option("--most", default=6, show_default=True)
@click.option("--interval", "interval_s", default=0.2, show_default=True)
def main(runs: int, most: int, interval_s: float) -> None:
    """Print a table for each journal mode."""
    with tempfile.TemporaryDirectory() as name:
        replay = recorded(Path(name))
        for mode in MODES:
            setting = ReplaySetting((("journal_mode", mode),))
            fixed = fixed_speeds(replay, setting, most, interval_s)
            shown = "  ".join(f"{workers}: {speed:,.0f}" for workers, speed in fixed.items())
            print(f"journal_mode={mode}: operations a second by workers: {shown}", flush=True)
            compare(replay, setting, fixed, runs, interval_s)


def recorded(folder: Path) -> Replay:
    """Record a program, and return its workload with the original database."""
    program, database, before = folder / "program.py", folder / "a.db", folder / "before.db"
    program.write_text(PROGRAM)
    for path in (database, before):
        fill = f"import sqlite3; sqlite3.connect({str(path)!r}).executescript({FILL!r})"
        subprocess.run([sys.executable, "-c", fill], check=True)
    trace = folder / "x.qprof"
    command = [QUERYPROF, "run", "--no-report", "--record-workload", "-o", trace, program, database]
    subprocess.run(command, check=True)
    return load_replay(str(trace), str(before))


def fixed_speeds(
    replay: Replay, setting: ReplaySetting, most: int, interval_s: float
) -> dict[int, float]:
    """Return the operations per second of each number of workers."""
    speeds: dict[int, list[float]] = {workers: [] for workers in range(1, most + 1)}
    for _ in range(FIXED_INTERVALS):
        for workers, found in speeds.items():
            run = play_on_copy(replay, setting, workers=workers, seconds=interval_s)
            found.append(run.executions / run.wall_s)
    return {workers: statistics.fmean(found) for workers, found in speeds.items()}


def compare(
    replay: Replay,
    setting: ReplaySetting,
    fixed: dict[int, float],
    runs: int,
    interval_s: float,
) -> None:
    """Run the searches alternately, and print their results."""
    best = max(fixed.values())
    regrets: dict[str, list[float]] = {name: [] for name in SEARCHES}
    intervals: dict[str, list[int]] = {name: [] for name in SEARCHES}
    for _ in range(runs):
        for name, search in SEARCHES.items():
            points, chosen = search_workers(
                replay, setting, search(1, len(fixed)), interval_s, MAX_INTERVALS
            )
            regrets[name].append(1 - fixed[chosen] / best)
            intervals[name].append(sum(point.intervals for point in points))
    print(f"{'':14}{'regret':>8}{'worst':>8}{'intervals':>11}{'most':>6}")
    for name in SEARCHES:
        print(
            f"{name:14}{statistics.fmean(regrets[name]):>8.1%}{max(regrets[name]):>8.1%}"
            f"{statistics.median(intervals[name]):>11.0f}{max(intervals[name]):>6}",
            flush=True,
        )


if __name__ == "__main__":
    main()
