"""Read a trace for a command, including recordings that killed processes left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queryprof.model import Profile

SHOWN = 3
"""Maximum number of file names or reasons in a line."""

MANY_PROCESSES, MANY_SUMS = 100, 200_000
"""A trace with more processes and more aggregates than these limits loads slowly. `queryprof merge
--collapse` makes a trace with the same totals that loads quickly.
"""


def trace_argument(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument FILE: a trace, or a directory or pattern of traces."""
    return click.argument(
        "file", nargs=-1, required=True, type=click.Path(), metavar="FILE", callback=_only_file
    )(command)


def _only_file(context: click.Context, _: click.Parameter, files: tuple[str, ...]) -> str:
    if len(files) > 1:
        raise click.UsageError(
            f"{context.info_name} reads one trace; to read several together, merge them:"
            f" queryprof merge all.qprof {' '.join(files)}"
        )
    return files[0]


class SkippedInputNotes:
    """Prints why inputs cannot be read, each reason once.

    As a context, an object catches and prints TraceErrors, so that the command can continue.
    """

    def __init__(self) -> None:
        self._reasons: set[str] = set()

    def add(self, reason: str) -> None:
        """Print a reason."""
        from queryprof.cli.output import print_message

        if reason not in self._reasons:
            self._reasons.add(reason)
            print_message(f"skipped: {reason}")

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        from queryprof.errors import TraceError

        if isinstance(error, TraceError):
            self.add(str(error))
            return True
        return False


def read_combined_profile(path: str) -> Profile:
    """Return the profile of a trace, or of all traces of a directory or pattern together.

    Disables garbage collection, so use this function only in commands that end soon. Raises
    TraceError.
    """
    import gc

    from queryprof.collect.given_traces import traces_for_argument

    gc.disable()  # a large trace has 100,000 objects, and all live until the end
    traces = traces_for_argument(path)
    return _read_one_trace(path) if traces == [path] else _read_all_traces(path, traces)


def _read_all_traces(given: str, traces: Sequence[str]) -> Profile:
    from queryprof.analysis.overview import unended_processes
    from queryprof.analysis.units import counted
    from queryprof.cli.output import print_message
    from queryprof.cli.progress import progress
    from queryprof.collect.reader import read_profiles

    with progress("reading", len(traces)) as step:
        profile, repeated = read_profiles(traces, step)
    running, killed = map(len, unended_processes(profile))
    ended = len(profile.processes) - running - killed
    kinds = {"running": running, "ended": ended, "killed or in another container": killed}
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
    more = f", {profile.unlisted.count:,} that ended and are not listed" if profile.unlisted else ""
    print_message(
        f"{given}: {counted(len(traces), 'trace')} of {_process_count(profile.process_count)}"
        f"{': ' * bool(listed)}{listed}{more}"
    )
    if profile.left_out:
        hidden = len(profile.left_out) - SHOWN
        rest = f"; and {hidden:,} more" if hidden > 0 else ""
        print_message(f"skipped: {'; '.join(profile.left_out[:SHOWN])}{rest}")
    if repeated:
        print_message(several_traces_note(repeated))
    _print_size_advice(given, profile)
    return profile


def several_traces_note(processes: int) -> str:
    """Return a line about processes that are in several traces."""
    one, several = "process is in several traces and is", "processes are in several traces and are"
    return f"{processes:,} {one if processes == 1 else several} counted once per trace"


def _process_count(count: int) -> str:
    return f"{count:,} {'process' if count == 1 else 'processes'}"


def _print_size_advice(given: str, profile: Profile) -> None:
    """If a trace takes long to load, print a command that makes it smaller."""
    from queryprof.cli.output import print_message

    if profile.process_count > MANY_PROCESSES and len(profile.aggregates) > MANY_SUMS:
        print_message(
            f"{profile.process_count:,} processes with {len(profile.aggregates):,} rows load"
            f" slowly; for a smaller trace, run: queryprof merge --collapse SMALL.qprof {given}"
        )


def _read_one_trace(path: str) -> Profile:
    from queryprof.collect.reader import read_profile
    from queryprof.collect.recovery import child_traces
    from queryprof.report.inert import escape_control_characters

    def print_recovered(trace: str) -> None:
        line = f"queryprof: recovered an unsaved recording: {escape_control_characters(trace)}"
        click.echo(line, err=True)

    profile = read_profile(path, report_recovered=print_recovered)
    _print_size_advice(path, profile)
    since_unix_ns = min((p.start_unix_ns for p in profile.processes), default=0)
    others = child_traces(path, since_unix_ns, {p.pid for p in profile.processes})
    if others:
        click.echo(
            f"queryprof: {escape_control_characters(_other_traces_note(path, others))}", err=True
        )
    return profile


def _other_traces_note(path: str, others: Sequence[str]) -> str:
    """Return a line about the processes of a recording that have their own traces."""
    import os
    from shlex import quote

    from queryprof.analysis.units import counted

    names = [os.path.basename(one) for one in others]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    stem, extension = os.path.splitext(path)
    merged, first, pattern = map(quote, (f"{stem}-all{extension}", path, f"{stem}-*{extension}"))
    return (
        f"this recording has {counted(len(names), 'more trace')}: {', '.join(names[:SHOWN])}{more};"
        f" merge all of its traces: queryprof merge {merged} {first} {pattern}"
    )
