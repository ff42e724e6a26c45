"""The slowest executions, for a terminal, each with its stack."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.report import Report
from queryprof.analysis.units import counted, duration
from queryprof.model import Exemplar, Frame
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, console_for, print_parts
from queryprof.report.terminal.sql import SqlText

SHOWN = 10
FRAMES, OWN_FRAMES = 8, 4
"""Maximum number of frames shown of a stack: all frames, and those of the program."""

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
    before = -1
    for place in [*_shown_places(frames), len(frames)]:
        if place > before + 1:
            inside.append(Text(f"... ({counted(place - before - 1, 'more frame')})", "dim"))
        if place < len(frames):
            inside.append(Text(places.frame_text(frames[place]), "cyan", overflow="fold"))
        before = place
    return Group(Text(""), head, Padding(Group(*inside), (0, 0, 0, 5)))


def _shown_places(frames: Sequence[Frame]) -> list[int]:
    """Return the places of the frames to show: the program's innermost frames, then the innermost
    other frames.
    """
    own = [place for place, frame in enumerate(frames) if frame.kind == "user"][:OWN_FRAMES]
    others = [place for place in range(len(frames)) if place not in own]
    return sorted([*own, *others[: FRAMES - len(own)]])
