"""`queryprof lab replay`: execute a recorded workload again, on copies of its database."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from queryprof.cli.compare import comparison_options, print_verdict
from queryprof.cli.workload import workload_arguments
from queryprof.errors import QueryprofError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queryprof.replay.player import ReplayResult
    from queryprof.replay.replaying import Replay, ReplaySetting

MAX_REASONS = 5


@click.command()
@workload_arguments
@click.option(
    "--pragma",
    "pragmas",
    multiple=True,
    metavar="NAME=VALUE",
    help="Compare with this setting (repeatable).",
)
@click.option(
    "--index",
    "indexes",
    multiple=True,
    metavar="SQL",
    help="Compare with this index or other SQL, run before the replay (repeatable).",
)
@click.option(
    "--sqlite",
    "library",
    type=click.Path(exists=True, dir_okay=False),
    help="Compare with this SQLite library (libsqlite3.so).",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Replay with this many workers; 1 keeps the recorded order.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Replays of each side (alternating).",
)
@comparison_options
def replay(
    file: str,
    database: str,
    pragmas: tuple[str, ...],
    indexes: tuple[str, ...],
    library: str | None,
    workers: int,
    rounds: int,
    **judgement: Any,
) -> None:
    """Replay FILE's workload on copies of its database.

    Record it with `queryprof run --record-workload`. With --pragma, --index or --sqlite, queryprof
    replays the recorded and the changed settings alternately, and compares them.
    """
    from queryprof.confined.folder import temporary_folder
    from queryprof.replay.replaying import (
        ReplaySetting,
        load_replay,
        parse_pragma,
        play_on_copy,
        texts_with_different_rows,
    )

    chosen = ReplaySetting(tuple(map(parse_pragma, pragmas)), indexes, library or "")
    sides = [ReplaySetting()] if chosen == ReplaySetting() else [ReplaySetting(), chosen]
    found = load_replay(file, database)
    with temporary_folder() as folder:
        runs: list[list[ReplayResult]] = [[] for _ in sides]
        traces: list[list[str]] = [[] for _ in sides]
        for turn in range(rounds):
            for number, setting in enumerate(sides) if turn % 2 else reversed([*enumerate(sides)]):
                trace = os.path.join(folder, f"{number}-{turn}.qprof") if len(sides) > 1 else ""
                runs[number].append(play_on_copy(found, setting, trace, workers))
                traces[number].append(trace)
        others = texts_with_different_rows([run for side in runs for run in side])
        _print_summary(found, sides, runs, others)
        if len(sides) > 1:
            print_verdict(traces[0], traces[1], **judgement)
    if others:
        at = found.sites.get(others[0], "an unknown line")
        raise QueryprofError(
            f"replay: {len(others)} statements did not return the same rows in each round, such as:"
            f" {others[0][:80]} (at {at})"
        )


def _print_summary(
    found: Replay,
    sides: Sequence[ReplaySetting],
    runs: Sequence[Sequence[ReplayResult]],
    others: Sequence[str],
) -> None:
    """Print a summary of the replays on stderr, because a program may read stdout."""
    from queryprof.analysis.units import counted, duration
    from queryprof.report.inert import escape_control_characters
    from queryprof.statistics.student import mean_with_95_interval

    first = runs[0][0]
    lines = [
        f"replayed {counted(first.executions, 'execution')}, {counted(len(runs[0]), 'time')} on"
        + (" each side" if len(sides) > 1 else " a copy")
        + f"; in the recording, they took {duration(found.recorded_s * 1e9)} without fetches"
    ]
    for number, side in enumerate(runs):
        mean, half = mean_with_95_interval([run.database_s * 1e9 for run in side])
        name = ("before", "after")[number] if len(sides) > 1 else "database time"
        interval = f" ± {duration(half)} (95%)" if half is not None else ""
        speed = sum(run.executions for run in side) / sum(run.wall_s for run in side)
        lines.append(f"{name}: {duration(mean)}{interval}, {speed:,.0f} executions per second")
    if found.is_cut:
        lines.append(
            "! the workload is incomplete: it reached its size limit, or its end is missing"
        )
    for reason, many in first.left_out.most_common(MAX_REASONS):
        lines.append(f"! {counted(many, 'execution')} skipped: the statement {reason}")
    if not others:
        lines.append("rows: equal in all rounds" if first.digests else "rows: none were compared")
    for line in lines:
        click.echo(escape_control_characters(line), err=True)
