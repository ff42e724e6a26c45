"""`queryprof lab pragmas` and `lab workers`: find settings for a recorded workload."""

from __future__ import annotations

import os

import click

from queryprof.cli.amounts import duration

MAX_INTERVALS = 60


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--db",
    "database",
    type=click.Path(),
    required=True,
    help="Database as it was before the recording. queryprof works on a copy.",
)
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME=VALUE,VALUE",
    help="Pragma with two values; up to six.  [default: journal_mode, synchronous, cache_size,"
    " mmap_size]",
)
@click.option(
    "--replications",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Replays of each combination; confidence intervals need two or more.",
)
def pragmas(file: str, database: str, factors: tuple[str, ...], replications: int) -> None:
    """Replay a workload with every combination of pragmas.

    FILE is a trace with a workload. This is a 2^k factorial experiment.
    """
    from queryprof.cli.progress import progress
    from queryprof.replay.pragmas import DEFAULT_FACTORS, experiment, parse_factor
    from queryprof.replay.replaying import load_replay
    from queryprof.report.terminal.tuning import print_pragmas

    chosen = [parse_factor(text) for text in factors or DEFAULT_FACTORS]
    found = load_replay(file, database)
    with progress("replaying", replications * 2 ** len(chosen)) as step:
        result = experiment(found, chosen, replications, lambda *_: step())
    print_pragmas(result)


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--db",
    "database",
    type=click.Path(),
    required=True,
    help="Database as it was before the recording. queryprof works on a copy.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1, max=256),
    default=None,
    help="Largest number of workers.  [default: 4 per processor]",
)
@click.option(
    "--interval",
    "interval_s",
    type=duration(0.1),
    default="2s",
    show_default=True,
    help="Length of one trial.",
)
@click.option(
    "--pragma",
    "chosen",
    multiple=True,
    metavar="NAME=VALUE",
    help="Pragma for each connection (repeatable).",
)
@click.option("--processes", is_flag=True, help="Use processes, not threads.")
def workers(
    file: str,
    database: str,
    most: int | None,
    interval_s: float,
    chosen: tuple[str, ...],
    processes: bool,
) -> None:
    """Find the number of workers with the highest throughput.

    It counts how many of the transactions in FILE's workload complete per second.
    """
    from queryprof.replay.replaying import Setting, load_replay, parse_pragma
    from queryprof.replay.workers import search_workers
    from queryprof.report.terminal.tuning import print_workers
    from queryprof.tuning.workers import SteadySearch

    highest = most or 4 * (os.cpu_count() or 1)
    setting = Setting(tuple(map(parse_pragma, chosen)))
    search = SteadySearch(1, highest)
    points, best = search_workers(
        load_replay(file, database), setting, search, interval_s, MAX_INTERVALS, processes
    )
    print_workers(points, best)
