"""`queryprof lab pragmas` and `lab workers`: find settings for a recorded workload."""

from __future__ import annotations

import os

import click

from queryprof.cli.workload import workload_arguments

REPLICATIONS = 3
"""Replays of each combination of pragmas. Confidence intervals need two or more."""

INTERVAL_S, MAX_INTERVALS = 2.0, 60
"""The length of one trial with a number of workers, and the maximum number of trials."""


@click.command()
@workload_arguments
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME=VALUE,VALUE",
    help="Pragma and two values to try (repeatable, up to six).  [default: journal_mode,"
    " synchronous, cache_size, mmap_size]",
)
def pragmas(file: str, database: str, factors: tuple[str, ...]) -> None:
    """Replay a workload with every combination of pragmas.

    FILE is a trace with a workload. This is a 2^k factorial experiment.
    """
    from queryprof.cli.progress import progress
    from queryprof.replay.pragmas import DEFAULT_FACTORS, parse_factor, replay_combinations
    from queryprof.replay.replaying import load_replay
    from queryprof.report.terminal.tuning import print_pragmas

    chosen = [parse_factor(text) for text in factors or DEFAULT_FACTORS]
    found = load_replay(file, database)
    with progress("replaying", REPLICATIONS * 2 ** len(chosen)) as step:
        result = replay_combinations(found, chosen, REPLICATIONS, lambda *_: step())
    print_pragmas(result)


@click.command()
@workload_arguments
@click.option(
    "--most",
    type=click.IntRange(min=1, max=256),
    default=None,
    help="Largest number of workers.  [default: 4 per processor]",
)
def workers(file: str, database: str, most: int | None) -> None:
    """Find the number of workers with the highest throughput.

    It counts how many of the transactions in FILE's workload complete per second.
    """
    from queryprof.replay.replaying import ReplaySetting, load_replay
    from queryprof.replay.workers import search_workers
    from queryprof.report.terminal.tuning import print_workers
    from queryprof.statistics.worker_search import SteadyWorkerSearch

    highest = most or 4 * (os.cpu_count() or 1)
    search = SteadyWorkerSearch(1, highest)
    points, best = search_workers(
        load_replay(file, database), ReplaySetting(), search, INTERVAL_S, MAX_INTERVALS
    )
    print_workers(points, best)
