"""`queryprof export`: the database time in the formats of other viewers, and Parquet files."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from queryprof.cli.otlp import FORMAT, export_otlp

if TYPE_CHECKING:
    from queryprof.cli.reading import LeftOut
    from queryprof.fleet.flat import Given
    from queryprof.fleet.location import Location

PARQUET = "parquet"
SUFFIXES = {
    "pstats": ".prof",
    "speedscope": ".speedscope.json",
    "trace-events": ".trace.json",
}
PSTATS_NODES = 1000
"""Viewers of pstats lay out all nodes: with 8,000 snakeviz takes 20 s."""


@click.command()
@click.argument("files", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice((*SUFFIXES, PARQUET, FORMAT)),
    required=True,
    help="The viewer's; Parquet files, for a fleet; or OpenTelemetry's protocol.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="The file; - is standard output.  [default: FILE with the format's ending]  Of parquet:"
    " the directory.",
)
@click.option("--stacks", is_flag=True, help="Whole stacks, with libraries: estimates.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="How many functions and statements; the rest is (other).  [default: 1000 for pstats]",
)
@click.option("--force", is_flag=True, help="Replaces a file that this command has not made.")
@click.option("--service", help="parquet: of traces without a name: the service ...")
@click.option("--version", help="... its version ...")
@click.option("--environment", help="... and the deployment's environment.")
@click.option(
    "--anonymize", is_flag=True, help="parquet: hashes instead of statements, places and names."
)
@click.option(
    "--endpoint", metavar="URL", help="otlp: where to.  [default: OTEL_EXPORTER_OTLP_ENDPOINT]"
)
@click.option("--statement-text", "has_text", is_flag=True, help="otlp: statements' texts, too.")
def export(
    files: tuple[str, ...],
    form: str,
    output: str | None,
    stacks: bool,
    top: int | None,
    force: bool,
    service: str | None,
    version: str | None,
    environment: str | None,
    anonymize: bool,
    endpoint: str | None,
    has_text: bool,
) -> None:
    """Writes FILE's database time for another viewer.

    With --format otlp: sends FILES... to an endpoint of OpenTelemetry's protocol.

    With --format parquet: the sums of FILES... (traces, directories and patterns) as files for a
    fleet, a file for each table, host and window, below the directory of -o.
    """
    if stacks and form in ("trace-events", PARQUET, FORMAT):
        raise click.UsageError("--stacks goes with pstats and speedscope")
    names = (service, version, environment)
    if form == FORMAT:
        if output is not None or top is not None or force or anonymize or any(names):
            raise click.UsageError("--format otlp goes with --endpoint and --statement-text alone")
        sys.exit(export_otlp(files, endpoint, has_text))
    if endpoint is not None or has_text:
        raise click.UsageError("--endpoint and --statement-text go with --format otlp")
    if form == PARQUET:
        if output in (None, "-", "") or top is not None or force:
            raise click.UsageError("--format parquet goes with -o DIRECTORY, and not with --top")
        sys.exit(_export_parquet(files, str(output), names, anonymize))
    if anonymize or any(names):
        raise click.UsageError("--service, --version, --environment, --anonymize: of parquet alone")
    if len(files) > 1:
        raise click.UsageError(f"--format {form} takes one FILE")
    _export_file(files[0], form, output, stacks, top, force)


def _export_parquet(
    given: tuple[str, ...],
    directory: str,
    names: tuple[str | None, str | None, str | None],
    is_anonymous: bool,
) -> int:
    """Writes what can be read; returns the exit status."""
    from queryprof.analysis.units import counted
    from queryprof.cli.fleet_extra import fleet_extra
    from queryprof.cli.output import print_message
    from queryprof.cli.progress import progress
    from queryprof.cli.reading import LeftOut
    from queryprof.collect.given_traces import traces_of
    from queryprof.fleet.flat import Given

    with fleet_extra():
        from queryprof.fleet.location import Directory
        from queryprof.fleet.parquet_files import refuse_other_schema
    refuse_other_schema(directory)
    location = Directory(directory)
    left_out = LeftOut()
    traces: list[str] = []
    for one in given:
        with left_out:
            traces += traces_of(one)
    written = 0
    with progress("exporting", len(traces)) as step:
        for path in traces:
            with left_out:
                written += _export_trace(path, Given(*names, is_anonymous), location, left_out)
            step()
    print_message(f"{counted(written, 'file')} written to {directory}")
    return 1 if left_out else 0


def _export_trace(path: str, names: Given, location: Location, left_out: LeftOut) -> int:
    """Writes a trace, or each window of one; returns how many files. Raises TraceError."""
    from queryprof.cli.output import print_message
    from queryprof.collect.reader import read_windows
    from queryprof.errors import TraceError
    from queryprof.fleet.flat import host_windows
    from queryprof.fleet.parquet_files import SHARED, write

    written, is_shared, has_calls = 0, False, False
    damaged: list[str] = []
    for profile in read_windows(path, damaged.append):
        if profile.running:
            raise TraceError(f"{path}: a process of it still runs")
        has_calls |= bool(profile.aggregates)
        for window in host_windows(profile, names):
            written += len(write(location, window))
            is_shared |= window.is_shared
    if is_shared:
        print_message(f"{path}: {SHARED}")
    for reason in damaged:
        left_out.add(reason)
    if not has_calls and not damaged:
        raise TraceError(f"{path}: has no calls")
    return written


def _export_file(
    file: str, form: str, output: str | None, stacks: bool, top: int | None, force: bool
) -> None:
    from queryprof.output_file import beside, refuse_other_file, write_output
    from queryprof.report.inert import visible

    path = output or beside(file, SUFFIXES[form])
    mark = _mark(form)
    if path != "-":
        refuse_other_file(path, mark, force)
    content = exported(file, form, stacks, top)
    if path == "-":
        sys.stdout.buffer.write(content)
        return
    write_output(path, content, mark, force)
    click.echo(visible(f"written: {path}"), err=True)


def _mark(form: str) -> bytes:
    """What distinguishes a file of a format from others'."""
    from queryprof.report.export import pstats, speedscope, trace_events

    return {
        "pstats": pstats.MARK,
        "speedscope": speedscope.MARK,
        "trace-events": trace_events.MARK,
    }[form]


def exported(file: str, form: str, stacks: bool, top: int | None) -> bytes:
    """A trace in a viewer's format. Raises TraceError."""
    from queryprof.cli.reading import LeftOut, read_whole
    from queryprof.report.export.pstats import pstats_file
    from queryprof.report.export.speedscope import speedscope_file
    from queryprof.report.export.trace_events import trace_events_file
    from queryprof.report.export.weights import reduced, weights_of

    profile = read_whole(file)
    left_out = LeftOut()
    for reason in profile.left_out:
        left_out.add(reason)
    if form == "trace-events":
        return trace_events_file(profile)
    nodes = PSTATS_NODES if form == "pstats" and top is None else top
    weights = reduced(weights_of(profile, stacks), nodes)
    if form == "pstats":
        return pstats_file(weights)
    estimate = " (whole stacks: an estimate)" if stacks else ""
    return speedscope_file(weights, f"{os.path.basename(file)}: database time{estimate}")
