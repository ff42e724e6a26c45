"""`queryprof doctor --clean`: make traces from recordings that ended processes left in memory."""

from __future__ import annotations

import os

import click

SHOWN = 10
"""Maximum number of traces, and of files per trace, to list."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queryprof.collect.cleaning import RegionLeft


def clean() -> None:
    """Make the traces of ended processes. Print the new traces, and the recordings that remain."""
    from queryprof.collect.cleaning import regions_left_behind, save_left_regions
    from queryprof.report.inert import escape_control_characters

    found = regions_left_behind()
    if not found:
        click.echo("no ended process left a recording")
        return
    for path in save_left_regions(found):
        click.echo(f"written: {escape_control_characters(path)}")
    _print_left(one for one in found if os.path.lexists(one.path))


def _print_left(found: Iterable[RegionLeft]) -> None:
    """Print a line about the remaining recordings of each trace, largest trace first."""
    from queryprof.analysis.units import counted, format_bytes
    from queryprof.report.inert import escape_control_characters

    by_trace: dict[str, list[RegionLeft]] = {}
    for one in found:
        by_trace.setdefault(one.trace, []).append(one)
    ranked = sorted(by_trace.items(), key=lambda item: -sum(one.used_bytes for one in item[1]))
    for trace, left in ranked[:SHOWN]:
        size = format_bytes(sum(one.used_bytes for one in left))
        files = " ".join(one.path for one in left[:SHOWN]) + " ..." * (len(left) > SHOWN)
        what = f"{counted(len(left), 'recording')} ({size}) of {trace}{_why_not_saved(trace)}"
        click.echo(escape_control_characters(f"not saved: {what}: {files}"))
    if len(ranked) > SHOWN:
        click.echo(f"not saved: the recordings of {counted(len(ranked) - SHOWN, 'other trace')}")


def _why_not_saved(trace: str) -> str:
    directory = os.path.dirname(trace)
    if not os.path.isdir(directory):
        return f" ({directory} is gone)"
    return "" if os.access(directory, os.W_OK) else f" ({directory} cannot be written to)"
