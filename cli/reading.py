"""How the commands read a trace: what killed processes left is brought in and reported first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queryprof.model import Profile

SHOWN = 3
"""Names of files in a line."""

MANY_PROCESSES, MANY_SUMS = 100, 200_000
"""Of a trace with more of both, a collapsed one has the same sums and is read at once."""


class LeftOut:
    """What cannot be read, each reason printed once. As a context it takes what is raised there,
    and the rest goes on.
    """

    def __init__(self) -> None:
        self._reasons: set[str] = set()

    def add(self, reason: str) -> None:
        """Prints a reason."""
        from queryprof.cli.output import print_message

        if reason not in self._reasons:
            self._reasons.add(reason)
            print_message(f"left out: {reason}")

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


def read_whole(path: str) -> Profile:
    """The profile of the trace at `path`, for a command that ends soon. Raises TraceError."""
    import gc

    from queryprof.collect.reader import read_profile
    from queryprof.collect.recovery import bring_in, others_of
    from queryprof.report.inert import visible

    for recovered in bring_in(path):
        click.echo(
            f"queryprof: recovered what a process left: {visible(recovered)}",
            err=True,
        )
    gc.disable()  # a large trace is 100,000 objects that all stay to the end
    profile = read_profile(path)
    if profile.process_count > MANY_PROCESSES and len(profile.aggregates) > MANY_SUMS:
        click.echo(
            f"queryprof: {profile.process_count:,} processes with {len(profile.aggregates):,} sums:"
            f" queryprof merge --collapse SMALL.qprof {visible(path)} makes of them what is read as"
            " fast as one",
            err=True,
        )
    others = others_of(path, min((p.start_unix_ns for p in profile.processes), default=0))
    if others:
        click.echo(f"queryprof: {visible(_not_in(path, others))}", err=True)
    return profile


def _not_in(path: str, others: Sequence[str]) -> str:
    """A line about the processes of a recording that have traces of their own."""
    import os
    from shlex import quote

    from queryprof.analysis.units import counted

    names = [os.path.basename(one) for one in others]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    stem, extension = os.path.splitext(path)
    merged, first, pattern = map(quote, (f"{stem}-all{extension}", path, f"{stem}-*{extension}"))
    return (
        f"{counted(len(names), 'further trace')} of this recording:"
        f" {', '.join(names[:SHOWN])}{more}; all together: queryprof merge {merged}"
        f" {first} {pattern}"
    )
