"""`queryprof top`: show running queries, refreshed regularly."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

import click

from queryprof.cli.amounts import duration
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import QueryprofError
from queryprof.trace.header import is_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.analysis.activity import LiveActivity
    from queryprof.analysis.lock_strips import LockStrip, RecentLocks
    from queryprof.region.live import ActivityReader, Chosen

SORTS = ("time", "executions", "mean", "vmsteps")
TRACE = ".qprof"
"""File name extension of a trace. The trace of a running process may not exist yet."""

KEYS = "q quit   s sort   p pause   j k select   Enter details"
GONE = "\x04"
"""The key that stands for a closed terminal."""


@click.command()
@click.argument("target", required=False)
@click.option(
    "--every", type=duration(0.05, 3600), default="1s", show_default=True, help="Refresh interval."
)
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "json")),
    default="table",
    help="json prints one line per refresh.",
)
@click.option("--attach", "attaches", is_flag=True, help="Record process TARGET while top runs.")
def top(target: str | None, every: float, once: bool, form: str, attaches: bool) -> None:
    """Show which queries recorded programs run now.

    TARGET is a process id, a trace, or a directory of traces. The default is all your recorded
    processes. Without a terminal it prints once.
    """
    with _attached_process(target) if attaches else nullcontext():
        _show_activity(target, every, once, form == "json")


@contextmanager
def _attached_process(target: str | None) -> Iterator[None]:
    """Record a process while the block runs, without keeping a trace."""
    from queryprof.cli.attach import attached_processes
    from queryprof.cli.recording import CommandRecordings

    if not (target or "").isdecimal():
        raise click.UsageError("--attach needs the id of a process")
    parts = CommandRecordings(os.devnull)
    try:
        with attached_processes([int(str(target))], parts):
            yield
    finally:
        parts.discard()


def _show_activity(target: str | None, every: float, once: bool, as_json: bool) -> None:
    from queryprof.region.live import ActivityReader

    watch = ActivityReader(target_filter(target, "top"))
    try:
        if as_json:
            _print_json(watch, every, once)
        elif once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print_once(watch, every)
        else:
            _run_screen(watch, every)
    except KeyboardInterrupt:
        pass
    finally:
        watch.close()


def target_filter(target: str | None, command: str) -> Chosen | None:
    """Return a filter for a target; None for all processes. Raises QueryprofError if the target
    does not exist.
    """
    from queryprof.region.live import pid_filter, trace_path_filter

    if target is None:
        return None
    if target.isdecimal() and not os.path.exists(target):
        if not os.path.exists(f"/proc/{target}"):
            raise QueryprofError(f"{command}: no running process {target}")
        return pid_filter(int(target))
    if os.path.isfile(target) and os.path.getsize(target) and not is_trace(target):
        raise QueryprofError(f"{command}: {target}: not a queryprof trace")
    if not target.endswith((TRACE, os.sep)) and not os.path.exists(target):
        raise QueryprofError(f"{command}: {target}: no such process, trace or directory")
    return trace_path_filter(target)


def _read_rows(watch: ActivityReader, sort: str, locks: RecentLocks | None = None) -> LiveActivity:
    from queryprof.analysis.activity import combine_activity

    processes = watch.read_activity()
    if locks is not None:
        locks.add(processes, unix_ns())
    return combine_activity(processes, sort)


def _print_json(watch: ActivityReader, every: float, once: bool) -> None:
    from queryprof.report.json.writing import to_json

    watch.read_activity()
    while True:
        time.sleep(every)
        activity = to_json(_read_rows(watch, SORTS[0]))
        click.echo(f'{{"at_unix_ns": {unix_ns()}, {activity.removeprefix("{")}')
        sys.stdout.flush()
        if once:
            return


def _print_once(watch: ActivityReader, every: float) -> None:
    from queryprof.analysis.lock_strips import RecentLocks
    from queryprof.report.terminal.console import console_for, print_parts
    from queryprof.report.terminal.top import top_screen

    watch.read_activity()
    time.sleep(every)
    console, locks = console_for(), RecentLocks()
    now = _read_rows(watch, SORTS[0], locks)
    strips = locks.strips(now.held, unix_ns(), console.width)
    title = _refresh_title(every, SORTS[0])
    print_parts(console, [top_screen(now, console.width, 40, title, locks=strips)])


def _refresh_title(every: float, sort: str) -> str:
    return f"queryprof top: the last {every:g} s, by {sort}"


def _run_screen(watch: ActivityReader, every: float) -> None:
    """Refresh the screen and handle keys until the user quits."""
    from rich.live import Live

    from queryprof.analysis.lock_strips import RecentLocks
    from queryprof.report.terminal.console import console_for
    from queryprof.report.terminal.top import statement_details, top_screen

    console, locks = console_for(), RecentLocks()
    watch.read_activity()
    sort, chosen, is_open, is_paused, now = SORTS[0], 0, False, False, None
    strips: tuple[LockStrip, ...] = ()
    with _key_reader() as key, Live(console=console, screen=True, auto_refresh=False) as live:
        due = time.monotonic() + every
        while True:
            if now is not None:
                rows = now.statements
                chosen = max(0, min(chosen, len(rows) - 1))
                details = (
                    statement_details(rows[chosen], watch.plans(rows[chosen].statement))
                    if is_open and rows
                    else []
                )
                title = f"{_refresh_title(every, sort)}{' (paused)' if is_paused else ''}   {KEYS}"
                view = top_screen(
                    now, console.width, console.height, title, chosen, details, strips
                )
                live.update(view, refresh=True)
            pressed = key(max(0.0, due - time.monotonic()))
            if pressed in ("q", "\x03", "\x04"):
                return
            if pressed == "s":
                sort = SORTS[(SORTS.index(sort) + 1) % len(SORTS)]
            elif pressed == "p":
                is_paused = not is_paused
            elif pressed in ("j", "k"):
                chosen += 1 if pressed == "j" else -1
            elif pressed in ("\r", "\n"):
                is_open = not is_open
            if time.monotonic() >= due:
                due = time.monotonic() + every
                latest = _read_rows(watch, sort, locks)
                if now is None or not is_paused:
                    now = latest
                    strips = locks.strips(now.held, unix_ns(), console.width)


@contextmanager
def _key_reader() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits for a key, and returns "" if no key came in the given seconds.

    Restores the terminal afterwards.
    """
    import select
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)

    def key(seconds: float) -> str:
        ready, _, _ = select.select([file], [], [], seconds)
        if not ready:
            return ""
        try:
            return os.read(file, 1).decode("ascii", "replace") or GONE
        except OSError:
            return GONE

    tty.setcbreak(file)
    try:
        yield key
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(file, termios.TCSADRAIN, before)
