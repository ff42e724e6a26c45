"""Output to readers that may stop reading before the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from queryprof.report.inert import escape_control_characters


def discard_closed_output() -> None:
    """Discard buffered output for closed streams, so that Python prints no error when it exits."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):  # if no descriptor is free, Python prints the error
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def allow_closed_output() -> Iterator[None]:
    """Let the reader of the output (a pager, `head`) stop reading early.

    An early stop is not an error, and does not change the exit status.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_closed_output()


def print_message(text: str) -> None:
    """Print a message of queryprof on stderr."""
    with allow_closed_output():
        click.echo(f"queryprof: {escape_control_characters(text)}", err=True)
