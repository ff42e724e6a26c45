"""The live view of `queryprof top`, for a terminal."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.activity import BusyStatement, LiveActivity
from queryprof.analysis.lock_strips import HELD, WAITED, LockStrip
from queryprof.analysis.units import average, count, counted, duration, percent, shorten
from queryprof.core.wall_clock import unix_ns
from queryprof.model import CallPath
from queryprof.model.live import HeldLock
from queryprof.report.places import Places, file_and_line
from queryprof.report.terminal.console import Text, borderless_table

WIDE = 110
FIGURE, GAP = 8, 2
"""Width of a figure, and of the gap between two figures, in columns."""

LONG_NS = 1_000_000_000
"""A write lock is shown if it has been held for at least this time in ns."""

MAX_HELD = 4
"""Maximum number of lines with write locks."""

MAX_STRIPS, MIN_HELD = 2, 0.01
"""Maximum number of databases whose lock is shown over the last minute. The lock of a database is
shown if a call waited for it, or if it was held for at least this share of the minute.
"""

STATES = "·▒█"
"""Characters for the states of a lock: free, held, awaited by a call."""

FRAMES = 2
"""Frames shown of a lock's stack. One frame is not enough: it may be a shared helper function."""

CALLER = 8
"""Minimum width for a caller, in columns. Less space would show only "..."."""

LINES_AROUND = 6
"""Lines of the screen above and below the table."""

NOTHING_RUNS = (
    "No process is being recorded. Start one with queryprof run, or with QUERYPROF=1 set. For a"
    " running process, use queryprof top --attach PID."
)


def top_screen(
    now: LiveActivity,
    width: int,
    height: int,
    title: str = "",
    chosen: int | None = None,
    details: Sequence[str] = (),
    locks: Sequence[LockStrip] = (),
) -> RenderableType:
    """Return one screen of `queryprof top`.

    Args:
        height: maximum number of lines.
        title: shown above the table.
        chosen: number of the highlighted row.
        details: lines about the highlighted row.
        locks: the locks of the last minute.
    """
    if not now.processes:
        return Group(Text(title, "bold"), Text(NOTHING_RUNS))
    places = Places()
    # Loops without a lag or a stall have only been idle.
    awake = [loop for loop in now.loops if loop.lag_p99_ns is not None or loop.stalls]
    loops = [
        Text(
            f"{loop.kind} loop in {loop.thread} ({loop.pid}): 99th percentile lag"
            f" {duration(loop.lag_p99_ns)}, blocked {counted(loop.stalls, 'time')}",
            "yellow" if loop.stalls else "",
            no_wrap=True,
            overflow="ellipsis",
        )
        for loop in awake[:4]
    ]
    held = [
        Text(
            f"{held_for_in_words(one)} ({one.pid}), taken at {_short_places(one.path)}"
            f" by {one.statement[:300]}",
            "yellow",
            no_wrap=True,
            overflow="ellipsis",
        )
        for one in now.held
        if unix_ns() - one.start_unix_ns >= LONG_NS
    ]
    if len(held) > MAX_HELD:
        held[MAX_HELD:] = [Text(f"{len(held) - MAX_HELD} more: queryprof locks FILE", "yellow")]
    strips = _lock_strips(locks)
    parts: list[RenderableType] = [Text(title, "bold"), *_processes_summary(now), *loops, *held]
    parts += strips
    room = max(1, height - LINES_AROUND - len(loops) - len(held) - len(strips) - len(details))
    table = borderless_table("")
    names = ("busy", "runs/s", "mean", "VM steps") if width >= WIDE else ("busy", "runs/s", "mean")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True, width=FIGURE)
    left = max(20, width - len(names) * (FIGURE + GAP) - 2 * GAP)
    for_statement, for_place = left // 2, left - left // 2
    for name, columns in (("statement", for_statement), ("place", for_place)):
        table.add_column(name, no_wrap=True, overflow="ellipsis", width=columns)
    for number, one in enumerate(now.statements[:room]):
        style = "reverse" if number == chosen else ""
        figures = [percent(one.busy), count(one.executions_per_s), duration(one.mean_ns)]
        if width >= WIDE:
            figures.append(average(one.vm_steps))
        table.add_row(
            *figures, one.statement[:300], statement_place(one, places, for_place), style=style
        )
    parts.append(table if now.statements else Text("No database call ended in this interval."))
    parts += [Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in details]
    return Group(*parts)


def _processes_summary(now: LiveActivity) -> list[RenderableType]:
    ended = [one for one in now.processes if one.has_ended]
    busiest = max(now.processes, key=lambda one: one.busy)
    busy = sum(one.busy for one in now.processes)
    ended_too = f", {len(ended)} ended" if ended else ""
    number = f"{len(now.processes)} process{'' if len(now.processes) == 1 else 'es'}"
    return [
        Text(
            f"{number}{ended_too}: {percent(busy)} of a core in the database, most in {busiest.pid}"
            f" {_short_command(busiest.command)}",
            no_wrap=True,
            overflow="ellipsis",
        )
    ]


def _lock_strips(locks: Sequence[LockStrip]) -> list[RenderableType]:
    """Return two lines per database: what happened to its lock in the last minute, and when."""
    lines: list[RenderableType] = []
    shown = [one for one in locks if one.waits or one.held >= MIN_HELD]
    for one in shown[:MAX_STRIPS]:
        name = os.path.basename(one.database) or one.database
        waited = (
            f", {counted(one.waits, 'call')} waited {STATES[WAITED]} (longest"
            f" {duration(one.longest_wait_ns)})"
            if one.waits
            else ""
        )
        text = f"write lock of {name}, last 60 s: held {percent(one.held)} {STATES[HELD]}{waited}"
        strip = "".join(STATES[state] for state in one.states)
        lines += [
            Text(line, "yellow" if one.waits else "", no_wrap=True, overflow="ellipsis")
            for line in (text, strip)
        ]
    return lines


def _short_command(command: Sequence[str]) -> str:
    """Return a command line without the folders of Python and of the program."""
    return shlex.join([os.path.basename(one) or one for one in command])


def held_for_in_words(one: HeldLock) -> str:
    """Return how long a write lock has been held."""
    return f"write lock held for {duration(max(0, unix_ns() - one.start_unix_ns))}"


def held_lock_lines(one: HeldLock) -> list[RenderableType]:
    """Return how long a write lock has been held, and the line and statement that took it."""
    places = Places(directories=[os.getcwd()])
    at = " <- ".join(map(places.frame_text, _informative_frames(one.path))) or "(unknown)"
    lines = (
        f"{held_for_in_words(one)}, thread {one.thread}",
        f"taken at {at}",
        f"by {shorten(one.statement, 300)}",
    )
    return [Padding(Text(line), (0, 0, 0, 4)) for line in lines]


def _informative_frames(path: CallPath) -> CallPath:
    """Return the first frames of a path. Omits a caller that is only a module's top level."""
    return (*path[:1], *(one for one in path[1:FRAMES] if one.function != "<module>"))


def _short_places(path: CallPath) -> str:
    """Return the frames of a path without the folders of their files."""
    places = Places()
    return (
        " <- ".join(
            f"{places.function(one)} {file_and_line(os.path.basename(one.file), one.line)}"
            for one in _informative_frames(path)
        )
        or "(unknown)"
    )


def statement_place(one: BusyStatement, places: Places, columns: int) -> str:
    """Return a statement's function, file and line, and its caller if there is room.

    The file and line are never cut.
    """
    if one.frame is None:
        return "(unknown)"
    caller = f" <- {places.function(one.callers[0])}" if one.callers else ""
    where = file_and_line(os.path.basename(one.frame.file), one.frame.line)
    function, room = places.function(one.frame), max(2, columns - len(where) - 1)
    if len(function) > room:
        function = f"{function[: room - 1]}…"
    text = f"{function} {where}"
    return f"{text}{caller}" if columns - len(text) >= min(len(caller), CALLER) else text


def statement_details(one: BusyStatement, plans: Sequence[str]) -> list[str]:
    """Return lines with the callers of a statement and its plans."""
    places = Places()
    at = places.frame_text(one.frame) if one.frame else "(unknown)"
    lines = [f"{at}  called by {' <- '.join(map(places.frame_text, one.callers)) or '(unknown)'}"]
    for plan in plans[:2]:
        lines += [f"plan  {step}" for step in plan.splitlines()[:6]]
    return lines if plans else [*lines, "plan  (unknown)"]
