"""`queryprof fleet compact`: combine a fleet's files of each day."""

from __future__ import annotations

import sys
from datetime import timedelta

import click

from queryprof.cli.amounts import DURATION
from queryprof.cli.fleet_extra import fleet_extra_imports


@click.command()
@click.argument("place", type=click.Path(), metavar="DIR|URL")
@click.option(
    "--keep",
    "keep_s",
    type=DURATION,
    help="Delete whole days that ended at least this long ago.",
)
def compact(place: str, keep_s: float | None) -> None:
    """Merge each day's files into one file per table, two days after the day ended.

    Safe to kill, to run twice at once, or to run together with `fleet ship`. A run at least a day
    later deletes the original files.
    """
    with fleet_extra_imports():
        from queryprof.fleet.compaction import Compaction
    from queryprof.analysis.units import counted
    from queryprof.cli.fleet_places import existing_location
    from queryprof.cli.output import print_message

    keep = None if keep_s is None else timedelta(seconds=keep_s)
    notes: list[str] = []
    done = Compaction(existing_location(place), keep, notes.append).run()
    for note in notes:
        print_message(note)
    print_message(
        f"{place}: merged {counted(done.sources, 'file')} into {done.days:,}; deleted"
        f" {done.removed:,}"
    )
    sys.exit(1 if notes else 0)
