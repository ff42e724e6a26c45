"""`queryprof last`: what recorded processes did in the last seconds."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

import click

from queryprof.cli.amounts import duration
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import QueryprofError

DEFAULT_S = 30.0
PERIOD = duration(0.001, 86_400)
TIMES = ("%H:%M", "%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")


@click.command()
@click.argument("words", nargs=-1, metavar="[DURATION] [TARGET]")
@click.option("--around", help="Time in the middle of the period, such as 03:12 or 03:12:07.")
@click.option("--html", "page", type=click.Path(), help="Also write a timeline to this HTML page.")
def last(words: tuple[str, ...], around: str | None, page: str | None) -> None:
    """Show what recorded processes did in the last seconds.

    It lists the busiest statements, the longest calls, lock waits with the holders, and the last
    calls of killed processes. DURATION is 30s by default. TARGET is a trace, a directory of traces,
    or a process id. The default is all your running processes.
    """
    from queryprof.analysis.recent import Period, end_of_recording, recent_activity
    from queryprof.analysis.report import Report
    from queryprof.collect.reader import read_profiles
    from queryprof.collect.recent_calls import CallChoice
    from queryprof.output_file import refuse_other_file, write_output
    from queryprof.report.html.html_report import MARK
    from queryprof.report.html.timeline import timeline_page
    from queryprof.report.terminal.last import print_last

    if page is not None:
        refuse_other_file(page, MARK.encode())
    seconds, target = _duration_and_target(words)
    length_ns = int(seconds * 1e9)
    traces = _traces(target)
    end_unix_ns = unix_ns() if around is None else _time_before(around) + length_ns // 2
    profile, _ = read_profiles(traces, calls=CallChoice(end_unix_ns - length_ns, end_unix_ns))
    ended_unix_ns = end_of_recording(profile)
    if around is None and ended_unix_ns is not None:
        end_unix_ns = ended_unix_ns
        profile, _ = read_profiles(traces, calls=CallChoice(end_unix_ns - length_ns, end_unix_ns))
    report = Report(profile)
    activity = recent_activity(report, Period(end_unix_ns - length_ns, end_unix_ns))
    print_last(report, activity)
    if page is not None:
        write_output(page, timeline_page(report, activity).encode(), MARK.encode())


def _duration_and_target(words: tuple[str, ...]) -> tuple[float, str | None]:
    """Return the length of the period in seconds, and the target."""
    seconds, rest = DEFAULT_S, list(words)
    if rest and not os.path.exists(rest[0]) and not rest[0].isdecimal() and rest[0][:1].isdecimal():
        seconds = PERIOD.convert(rest.pop(0), None, None)
    if len(rest) > 1:
        raise click.UsageError(f"give one TARGET, not several: {' '.join(rest)}")
    return seconds, rest[0] if rest else None


def _traces(target: str | None) -> list[str]:
    """Return the traces of a target, or of all running processes."""
    from queryprof.collect.given_traces import traces_for_argument, traces_of_running_processes

    if target is not None and not target.isdecimal():
        return traces_for_argument(target)
    traces = traces_of_running_processes(None if target is None else int(target))
    if not traces:
        which = f"process {target} is not" if target else "no process is"
        raise QueryprofError(f"last: {which} being recorded; give a trace or a directory")
    return traces


def _time_before(text: str) -> int:
    """Return the local time in a text as Unix time in ns. A time without a date means its latest
    occurrence before now.
    """
    now = datetime.now().astimezone()
    for form in TIMES:
        try:
            at = datetime.strptime(text, form).astimezone()
        except ValueError:
            continue
        if "%Y" not in form:
            at = datetime.combine(now.date(), at.time()).astimezone()
            at -= timedelta(days=at > now)
        return int(at.timestamp() * 1e9)
    raise click.BadParameter(f"{text!r} is not a time; write 03:12, 03:12:07 or 2026-05-01 03:12")
