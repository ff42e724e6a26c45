"""What commands print: to readers that may end before all is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from queryprof.report.inert import visible


def drop_output() -> None:
    """Discards what is left for streams that cannot be written to: Python must not print an error
    about it at its end.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):  # without a further descriptor it prints one
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def output_to_reader() -> Iterator[None]:
    """A context for output whose reader (a pager, head) may end before all is written, which is no
    error, and changes no exit status.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()


def print_message(text: str) -> None:
    """Prints a line about queryprof on stderr."""
    with output_to_reader():
        click.echo(f"queryprof: {visible(text)}", err=True)
