"""The slowest spans, for a terminal, each with its calls in order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.delays import Delay, Delays
from queryprof.analysis.report import Report
from queryprof.analysis.units import count, counted, duration, percent
from queryprof.model import SlowSpan, SpanRun
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, borderless_table, console_for, print_parts
from queryprof.report.text.spans import (
    NO_SPANS,
    NOT_RECORDED,
    delay_in_words,
    no_calls_sentence,
    run_statement,
)

SHOWN = 3
BAR_COLUMNS = 24
WIDE = 120
"""Terminals with this many columns or more show bars."""


def print_slowest_spans(
    report: Report, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the slowest spans: when they ran, and their driver calls in order."""
    console = console_for(file, width)
    places = Places(report.profile)
    shown = report.slowest_spans[: report.top or SHOWN]
    delays = Delays(report.profile)
    parts: list[RenderableType] = [
        _span_card(number, one, delays.delays_of_span(one), report, places, console.width)
        for number, one in enumerate(shown, 1)
    ]
    print_parts(console, parts or [Text(NOT_RECORDED if report.spans else NO_SPANS)])


def _span_card(
    number: int, one: SlowSpan, delays: Sequence[Delay], report: Report, places: Places, width: int
) -> RenderableType:
    started = datetime.fromtimestamp(one.started_unix_ns / 1e9, UTC).astimezone()
    status = f"  status {one.status}" if one.status is not None else ""
    head = Text.assemble(
        (f"{number:>3}  ", "bold"),
        (one.name, "bold"),
        "  ",
        (duration(one.duration_ns), "bold"),
        f"  {counted(one.executions, 'execution')}",
        f"  {percent(one.database_ns / (one.duration_ns or 1))} in the database",
        f"  {started:%H:%M:%S.%f}"[:-3],
        status,
        "  failed" if one.failed else "",
        overflow="fold",
    )
    table = borderless_table("")
    for name in ("at", "took", "calls", "rows"):
        table.add_column(name, justify="right", no_wrap=True)
    if width >= WIDE:
        table.add_column("", width=BAR_COLUMNS, no_wrap=True)
    table.add_column("", overflow="fold", ratio=1)
    for run in one.runs:
        figures: list[RenderableType | str] = [
            duration(run.start_ns),
            duration(run.self_ns),
            count(run.executions),
            count(run.rows),
        ]
        if width >= WIDE:
            figures.append(_draw_bar(run, one))
        what = Text(run_statement(run), no_wrap=True, overflow="ellipsis")
        site = Text(places.site(report.sites.site(run.path)), "cyan", overflow="fold")
        table.add_row(*figures, Group(what, site) if run.path else what)
    inside = table if one.runs else Text(no_calls_sentence(one), "dim")
    why = [Text(delay_in_words(delay, places), "yellow", overflow="fold") for delay in delays]
    return Group(Text(""), head, *(Padding(line, (0, 0, 0, 5)) for line in (*why, inside)))


def _draw_bar(run: SpanRun, one: SlowSpan) -> Text:
    """Draw a bar that shows when the run happened within the span."""
    whole = one.duration_ns or 1
    start = min(run.start_ns * BAR_COLUMNS // whole, BAR_COLUMNS - 1)
    end = min(-(-run.end_ns * BAR_COLUMNS // whole), BAR_COLUMNS)
    return Text(" " * start + "\u2588" * max(end - start, 1), "cyan")
