"""The timeline for a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.console import RenderableType

from queryprof.analysis.report import Report
from queryprof.analysis.timeline import timeline_of
from queryprof.analysis.units import count, duration, percent
from queryprof.report.terminal.console import (
    Text,
    borderless_table,
    console_for,
    heading_line,
    print_parts,
)

SHOWN = 24
"""Default number of intervals. A table with this number of rows fits on one screen."""

FIGURES_COLUMNS = 46
"""Columns for the figures; the bars take the rest of the width."""

NOTHING = "The trace has no timeline."
EIGHTHS = " ▏▎▍▌▋▊▉█"


def print_timeline(report: Report, file: TextIO | None = None, width: int | None = None) -> None:
    """Print throughput and busy share over time."""
    console = console_for(file, width)
    timeline = timeline_of(report.profile, report.top or SHOWN)
    if not timeline.moments:
        print_parts(console, [Text(NOTHING)])
        return
    table = borderless_table("")
    for name in ("from", "calls/s", "rows/s", "busy"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    most = max(moment.busy for moment in timeline.moments) or 1
    room = max(10, console.width - FIGURES_COLUMNS)
    for moment in timeline.moments:
        table.add_row(
            duration(moment.start_ns),
            count(moment.calls_per_s),
            count(moment.rows_per_s),
            percent(moment.busy),
            Text(_bar_text(moment.busy / most * room), "cyan"),
        )
    title = f"Database time per {duration(timeline.width_ns)} of wall time"
    parts: list[RenderableType] = [heading_line(title), table]
    if most > 1:
        parts.append(Text("Over 100%: several threads or processes at once.", "dim"))
    print_parts(console, parts)


def _bar_text(cells: float) -> str:
    eighths = round(cells * 8)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
