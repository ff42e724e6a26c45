"""`queryprof merge`: add up traces."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from queryprof.errors import QueryprofError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from queryprof.trace.checked_rows import CheckedTrace


def _is_same_file(output: str, given: str) -> bool:
    return os.path.exists(output) and os.path.exists(given) and os.path.samefile(output, given)


def _exclude_output(traces: list[str], given: str, output: str) -> list[str]:
    """Return the traces without the output file of an earlier merge in the same directory."""
    return [one for one in traces if one == given or not _is_same_file(output, one)]


@click.command()
@click.argument("output", type=click.Path())
@click.argument("inputs", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--collapse",
    "collapses",
    is_flag=True,
    help="Also merge threads with the same name; large merges read faster.",
)
def merge(output: str, inputs: tuple[str, ...], collapses: bool) -> None:
    """Merge the traces INPUTS into OUTPUT.

    An input is a trace, a directory of traces, or a glob pattern.
    """
    from queryprof.cli.output import print_message
    from queryprof.cli.progress import progress
    from queryprof.cli.reading import SkippedInputNotes, several_traces_note
    from queryprof.collect.given_traces import traces_for_argument
    from queryprof.collect.leftovers import LeftRecordings
    from queryprof.collect.merge import merge_traces
    from queryprof.collect.reader import opened_trace_of_many
    from queryprof.trace.header import is_trace

    traces = [
        trace
        for given in inputs
        for trace in _exclude_output(traces_for_argument(given), given, output)
    ]
    if not traces:
        raise QueryprofError(f"{output}: the inputs have no other trace to merge")
    is_there = os.path.isfile(output) and os.path.getsize(output) > 0
    if is_there and not is_trace(output):
        raise QueryprofError(f"{output}: exists and is not a queryprof trace; choose another name")
    if is_there and len(traces) == 1 and not _is_same_file(output, traces[0]):
        raise QueryprofError(
            f"{output}: already exists; to merge it with {inputs[0]}, write to a new file:"
            f" queryprof merge ALL.qprof {output} {inputs[0]}"
        )
    leftovers, left_out = LeftRecordings(), SkippedInputNotes()

    def opened(path: str) -> AbstractContextManager[CheckedTrace]:
        return opened_trace_of_many(path, leftovers, left_out.add)

    with progress("merging", len(traces)) as step:
        repeated = merge_traces(output, traces, step, opened, collapses)
    if repeated:
        print_message(several_traces_note(repeated))
