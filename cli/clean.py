"""`queryprof doctor --clean`: make traces of what ended processes left in shared memory."""

from __future__ import annotations

import os

import click

SHOWN = 10
"""Number of traces to list."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queryprof.collect.cleaning import RegionLeft


def clean(discards: bool) -> None:
    """Make the traces of ended processes. Print what was made and what is left.

    Args:
        discards: delete recordings that cannot become a trace, because the directory of the trace
            is gone or not writable.
    """
    from queryprof.collect.cleaning import discard_regions, regions_left_behind, save_left_regions
    from queryprof.report.inert import escape_control_characters

    found = regions_left_behind()
    if not found:
        click.echo("no ended process has left a recording")
        return
    for path in save_left_regions(found):
        click.echo(f"made: {escape_control_characters(path)}")
    found = [one for one in found if os.path.lexists(one.path)]
    gone = discard_regions(found) if discards else []
    _print_regions(gone, "deleted")
    _print_regions([one for one in found if one not in gone], "left")


def _print_regions(found: Iterable[RegionLeft], word: str) -> None:
    """Print a line for each trace, largest first."""
    from queryprof.analysis.units import counted, format_bytes
    from queryprof.report.inert import escape_control_characters

    by_trace: dict[str, list[int]] = {}
    for one in found:
        by_trace.setdefault(one.trace, []).append(one.used_bytes)
    ranked = sorted(by_trace.items(), key=lambda item: -sum(item[1]))
    for trace, sizes in ranked[:SHOWN]:
        what = f"of {trace}{_why_not_saved(trace)}"
        line = f"{word}: {counted(len(sizes), 'recording')}, {format_bytes(sum(sizes))}, {what}"
        click.echo(escape_control_characters(line))
    if rest := [one for _, sizes in ranked[SHOWN:] for one in sizes]:
        traces = counted(len(ranked) - SHOWN, "other trace")
        click.echo(
            f"{word}: {counted(len(rest), 'recording')}, {format_bytes(sum(rest))}, of {traces}"
        )


def _why_not_saved(trace: str) -> str:
    directory = os.path.dirname(trace)
    if not os.path.isdir(directory):
        return f" ({directory} is gone)"
    return "" if os.access(directory, os.W_OK) else f" ({directory} cannot be written to)"
