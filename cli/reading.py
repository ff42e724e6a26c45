"""How the commands read a trace: what killed processes left is brought in and said first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from queryprof.model import Profile


def read_whole(path: str) -> Profile:
    """The profile of the trace at `path`, for a command that ends soon. Raises TraceError."""
    import gc

    from queryprof.report.inert import visible
    from queryprof.trace.reader import read_profile
    from queryprof.trace.recovery import bring_in

    for recovered in bring_in(path):
        click.echo(
            f"queryprof: recovered what a process left that was killed: {visible(recovered)}",
            err=True,
        )
    gc.disable()  # a large trace is 100,000 objects that all stay to the end
    return read_profile(path)
