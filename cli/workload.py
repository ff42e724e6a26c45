"""The command-line arguments of commands that replay a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def workload_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument `file` (a trace), and the option `database` (the trace's database)."""
    database = click.option(
        "--db",
        "database",
        type=click.Path(),
        required=True,
        help="Database as it was before the recording. queryprof works on a copy.",
    )
    return click.argument("file", type=click.Path())(database(command))
