"""`queryprof fleet export`: write traces as Parquet files of a fleet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from queryprof.cli.otlp import otlp_options, send_traces_by_otlp

if TYPE_CHECKING:
    from queryprof.cli.reading import SkippedInputNotes
    from queryprof.fleet.location import Location


@click.command()
@click.argument("files", type=click.Path(), nargs=-1, required=True)
@click.option("-o", "--output", "directory", type=click.Path(), help="Directory of Parquet files.")
@otlp_options
@click.option("--anonymize", is_flag=True, help="Write hashes of statements, places and names.")
def export(
    files: tuple[str, ...],
    directory: str | None,
    endpoint: str | None,
    has_text: bool,
    anonymize: bool,
) -> None:
    """Write FILES as a fleet's Parquet files, or send them by OTLP.

    FILES are traces, directories of traces, or glob patterns. There is one Parquet file for each
    table, host and window.
    """
    if endpoint is not None:
        if directory is not None or anonymize:
            raise click.UsageError("--otlp accepts only --statement-text")
        sys.exit(send_traces_by_otlp(files, endpoint, has_text))
    if has_text:
        raise click.UsageError("--statement-text needs --otlp URL")
    if directory in (None, "", "-"):
        raise click.UsageError("needs -o DIRECTORY or --otlp URL")
    sys.exit(_export_parquet(files, str(directory), anonymize))


def _export_parquet(files: tuple[str, ...], directory: str, is_anonymous: bool) -> int:
    """Write all readable traces. Returns the exit status."""
    from queryprof.analysis.units import counted
    from queryprof.cli.fleet_extra import fleet_extra_imports
    from queryprof.cli.output import print_message
    from queryprof.cli.progress import progress
    from queryprof.cli.reading import SkippedInputNotes
    from queryprof.collect.given_traces import traces_for_argument

    with fleet_extra_imports():
        from queryprof.fleet.location import Directory
        from queryprof.fleet.parquet_files import refuse_other_schema
    refuse_other_schema(directory)
    location = Directory(directory)
    left_out = SkippedInputNotes()
    traces: list[str] = []
    for one in files:
        with left_out:
            traces += traces_for_argument(one)
    written = 0
    with progress("exporting", len(traces)) as step:
        for path in traces:
            with left_out:
                written += _export_trace(path, is_anonymous, location, left_out)
            step()
    print_message(f"{counted(written, 'file')} written to {directory}")
    return 1 if left_out else 0


def _export_trace(
    path: str, is_anonymous: bool, location: Location, left_out: SkippedInputNotes
) -> int:
    """Write a trace, or each of its windows, and return the number of files. Raises TraceError."""
    from queryprof.cli.output import print_message
    from queryprof.collect.reader import read_windows
    from queryprof.errors import TraceError
    from queryprof.fleet.flat import host_windows
    from queryprof.fleet.parquet_files import SHARED, write

    written, is_shared, has_calls = 0, False, False
    damaged: list[str] = []
    for profile in read_windows(path, damaged.append):
        if profile.running:
            raise TraceError(f"{path}: one of its processes is still running")
        has_calls |= bool(profile.aggregates)
        for window in host_windows(profile, is_anonymous):
            written += len(write(location, window))
            is_shared |= window.is_shared
    if is_shared:
        print_message(f"{path}: {SHARED}")
    for reason in damaged:
        left_out.add(reason)
    if not has_calls and not damaged:
        raise TraceError(f"{path}: no database calls")
    return written
