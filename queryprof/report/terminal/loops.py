"""The report on event loops, for a terminal."""

from __future__ import annotations

import math
import os
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.loops import LoopSummary, cumulative_shares
from queryprof.analysis.report import Report
from queryprof.analysis.summary import Summary
from queryprof.analysis.threads import process_namer
from queryprof.analysis.units import average, count, counted, duration, percent
from queryprof.model import Distribution
from queryprof.report.places import Places
from queryprof.report.terminal.console import (
    Text,
    TextTable,
    borderless_table,
    console_for,
    heading_line,
    print_parts,
    separate_lines,
)
from queryprof.report.text.loops import many_short_steps_note, stall_description

CHART_HEIGHT = 10
COLOURS = ("cyan", "red", "green", "yellow")
CHART_MARGIN = 22
"""Width of a chart's axis in columns."""

WIDE = 100
"""Minimum width in columns to show all figures of a function without breaking its name."""

LATE_NS = 10_000_000
"""Minimum 95th percentile of the heartbeat lag, in ns, for a warning."""

NOTHING_RAN = "No event loop ran."


def print_loops(report: Report, file: TextIO | None = None, width: int | None = None) -> None:
    """Print each event loop's stalls with their causes, and the loop's lag.

    Args:
        width: in columns; by default the terminal's width, or 80.
    """
    console = console_for(file, width)
    places = Places(report.profile)
    parts: list[RenderableType] = []
    for finding in report.loops:
        parts += _loop_parts(finding, report, places, console.width)
    print_parts(console, parts or [Text(NOTHING_RAN)])


def loop_summary(report: Report, places: Places, shown: int = 3) -> list[RenderableType]:
    """Return the worst stalls of all loops, for the first screen; [] without stalls."""
    stalls = [stall for finding in report.loops for stall in finding.stalls]
    worst = sorted(stalls, key=lambda finding: -finding.stall.total_ns)[:shown]
    if not worst:
        return []
    title = f"The event loop stalled in {counted(len(stalls), 'place')} (--show loops lists all)"
    parts: list[RenderableType] = [heading_line(title)]
    return parts + [
        Padding(Text(stall_description(stall, places)), (0, 0, 0, 5)) for stall in worst
    ]


def _loop_parts(
    finding: LoopSummary, report: Report, places: Places, width: int
) -> list[RenderableType]:
    loop, top = finding.loop, report.top
    named = process_namer(report.profile)(loop.thread)
    process = f", {named}" if named else ""
    busy = percent(finding.utilization) if finding.utilization is not None else "?"
    parts: list[RenderableType] = [
        heading_line(f"{loop.kind} in {loop.thread.name}{process}"),
        Text.assemble(
            f"ran {duration(loop.run_ns)}, busy ",
            (busy, "bold"),
            f", {count(loop.steps)} steps" if loop.has_steps else ", steps unknown",
            (
                f", {average(finding.mean_waiting)} callbacks ready per step (maximum"
                f" {count(loop.waiting_max)})"
                if finding.mean_waiting is not None
                else ""
            ),
        ),
        _lags_table(finding),
    ]
    if finding.stalls:
        parts.append(heading_line("What blocked it, by total time"))
    for rank, stall in enumerate(finding.stalls[:top], 1):
        head = Text.assemble(
            (f"{rank:>3}  ", "bold"),
            (f"{percent(stall.share):>6}", "bold red"),
            f"  {duration(stall.stall.total_ns)} in {counted(stall.stall.count, 'stall')},"
            f" longest {duration(stall.stall.max_ns)}: ",
            (stall.category, "bold"),
        )
        parts += [head, Padding(Text(stall_description(stall, places)), (0, 0, 0, 5))]
    if top and len(finding.stalls) > top:
        parts.append(Text(f"{len(finding.stalls) - top} more: --top {len(finding.stalls)}"))
    parts += _delays_table(finding, places, top)
    words = many_short_steps_note(finding, LATE_NS)
    if words:
        parts.append(Text(words))
    elif not finding.stalls:
        parts.append(_no_stalls_sentence(loop.has_steps))
    if finding.functions:
        parts.append(_functions_table(finding, places, top, width))
    if loop.beat_lag.count:
        title = "Loop lag: % of the heartbeats with at most this lag"
        parts += [
            heading_line(title),
            separate_lines(lag_chart({loop.kind: loop.beat_lag}, width).splitlines()),
        ]
    return parts


def _no_stalls_sentence(has_steps: bool) -> Text:
    if has_steps:
        return Text("No step reached the threshold.", style="green")
    return Text(
        "No stall was seen. This library's steps are not visible: a stall shows only if the next"
        " heartbeat is late."
    )


def _delays_table(finding: LoopSummary, places: Places, top: int | None) -> list[RenderableType]:
    """Return a table of the functions that delayed others, by total delay; [] without delays."""
    found = sorted((s for s in finding.stalls if s.delay_ns), key=lambda s: -s.delay_ns)
    if not found:
        return []
    table = borderless_table("\nDelays caused, by total")
    for name in ("waited", "callbacks", "each"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("because of", overflow="fold", ratio=1)
    for stall in found[:top]:
        place = stall.site.frame or stall.stall.function
        table.add_row(
            duration(stall.delay_ns),
            count(stall.delayed),
            duration(stall.mean_delay_ns),
            places.frame_text(place),
        )
    return [table]


def _lags_table(finding: LoopSummary) -> TextTable:
    table = borderless_table("")
    table.add_column("lag", no_wrap=True)
    for name in ("count", "mean", "p50", "p95", "p99", "max"):
        table.add_column(name, justify="right", no_wrap=True)

    def add(name: str, summary: Summary) -> None:
        table.add_row(
            name,
            count(summary.count),
            duration(summary.mean_ns),
            duration(summary.p50_ns),
            duration(summary.p95_ns),
            duration(summary.p99_ns),
            duration(summary.max_ns),
        )

    add("heartbeat", finding.beat_lag)
    add("timers", finding.timer_lag)
    return table


def _functions_table(
    finding: LoopSummary, places: Places, top: int | None, width: int
) -> RenderableType:
    is_wide = width >= WIDE
    table = borderless_table("\nTime by function")
    for name in ("share", "total", "steps", "mean", "max", "database"):
        if is_wide or name not in ("share", "mean"):
            table.add_column(name, justify="right", no_wrap=True)
    table.add_column("function", overflow="fold", ratio=1)
    for found in finding.functions[:top]:
        durations = found.step.durations
        table.add_row(
            *[percent(found.share)] * is_wide,
            duration(durations.total_ns),
            count(durations.count),
            *[duration(found.summary.mean_ns)] * is_wide,
            duration(durations.max_ns),
            percent(found.step.database_ns / durations.total_ns if durations.total_ns else 0.0),
            places.frame_text(found.step.function),
        )
    return Group(table)


def lag_chart(lags: dict[str, Distribution], width: int) -> str:
    """Chart the cumulative distribution of each lag in `lags`, on a logarithmic lag axis."""
    import plotille  # late, because it imports colour maps: slow for a report without loops

    figure = plotille.Figure()
    figure.width = max(20, width - CHART_MARGIN)
    figure.height = CHART_HEIGHT
    figure.with_colors = len(lags) > 1 and not os.environ.get("NO_COLOR")
    figure.color_mode = "names"
    figure.x_label, figure.y_label = "lag", "%"
    points = {
        name: [(math.log10(max(ns, 1000)), 100 * share) for ns, share in cumulative_shares(lag)]
        for name, lag in lags.items()
        if lag.count
    }
    ends = [x for line in points.values() for x, _ in line]
    low, high = (math.floor(min(ends)), math.ceil(max(ends) + 1e-9)) if ends else (3, 4)
    figure.set_x_limits(low, max(high, low + 1))
    figure.set_y_limits(0, 100)
    figure.x_ticks_fkt = lambda value, _: duration(10**value).replace(" ", "")
    figure.y_ticks_fkt = lambda value, _: f"{value:.0f}"
    for (name, line), colour in zip(points.items(), COLOURS, strict=False):
        steps = [(low, 0.0), *line, (max(high, low + 1), 100.0)]
        figure.plot(
            [x for x, _ in steps],
            [y for _, y in steps],
            label=name,
            lc=colour if figure.with_colors else None,
            marker=name[0] if len(points) > 1 else None,
        )
    return str(figure.show(legend=len(points) > 1))
