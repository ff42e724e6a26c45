"""The slowest executions, for a terminal, each with its stack."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.report import Report
from queryprof.analysis.units import counted, duration
from queryprof.model import Exemplar
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, console_for, print_parts
from queryprof.report.terminal.sql import SqlText

SHOWN = 10
FRAMES = 8
NOTHING_RAN = "No slow execution was kept."


def print_slowest(report: Report, file: TextIO | None = None, width: int | None = None) -> None:
    """Print the slowest executions, when they ran, and their stacks."""
    console = console_for(file, width)
    places = Places(report.profile)
    exemplars = report.profile.exemplars[: report.top or SHOWN]
    parts: list[RenderableType] = [
        _exemplar_card(number, one, places, console.width)
        for number, one in enumerate(exemplars, 1)
    ]
    print_parts(console, parts or [Text(NOTHING_RAN)])


def _exemplar_card(number: int, one: Exemplar, places: Places, width: int) -> RenderableType:
    started = datetime.fromtimestamp(one.started_unix_ns / 1e9, UTC).astimezone()
    span = f"  in {one.span}" if one.span else ""
    head = Text.assemble(
        (f"{number:>3}  ", "bold"),
        (duration(one.duration_ns), "bold"),
        f"  {counted(one.rows, 'row')}  {one.operation}  {started:%H:%M:%S.%f}"[:-3],
        f"  {one.thread.name}{span}",
        overflow="fold",
    )
    frames = one.stack or one.path
    inside: list[RenderableType] = [SqlText(one.sql or one.statement, width - 7)]
    if one.parameters:
        inside.append(Text(f"parameters {one.parameters}", "dim", overflow="fold"))
    inside += [Text(places.frame_text(frame), "cyan", overflow="fold") for frame in frames[:FRAMES]]
    if len(frames) > FRAMES:
        inside.append(Text(f"... ({len(frames) - FRAMES} more frames)", "dim"))
    return Group(Text(""), head, Padding(Group(*inside), (0, 0, 0, 5)))
