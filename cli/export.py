"""`queryprof export`: write the database time in the formats of other viewers."""

from __future__ import annotations

import os
import sys

import click

from queryprof.cli.reading import trace_argument

SUFFIXES = {
    "pstats": ".prof",
    "speedscope": ".speedscope.json",
}
PSTATS_NODES = 1000
"""Maximum number of nodes in a pstats file. Viewers lay out all nodes: snakeviz takes 20 s for
8,000 nodes.
"""


@click.command()
@trace_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(tuple(SUFFIXES)),
    required=True,
    help="Format to write, for the viewer of your choice.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="File to write; - is standard output.  [default: FILE with the format's ending]",
)
def export(file: str, form: str, output: str | None) -> None:
    """Write FILE's database time for another viewer."""
    from queryprof.output_file import beside, refuse_other_file, write_output
    from queryprof.report.inert import escape_control_characters

    path = output or beside(file, SUFFIXES[form])
    mark = _format_signature(form)
    if path != "-":
        refuse_other_file(path, mark)
    content = export_bytes(file, form)
    if path == "-":
        sys.stdout.buffer.write(content)
        return
    write_output(path, content, mark)
    click.echo(escape_control_characters(f"written: {path}"), err=True)


def _format_signature(form: str) -> bytes:
    """Return the bytes that identify a file in this format as written by queryprof."""
    from queryprof.report.export import pstats, speedscope

    return {"pstats": pstats.MARK, "speedscope": speedscope.MARK}[form]


def export_bytes(file: str, form: str) -> bytes:
    """Return a trace in a viewer's format. Raises TraceError."""
    from queryprof.cli.reading import SkippedInputNotes, read_combined_profile
    from queryprof.report.export.pstats import pstats_file
    from queryprof.report.export.speedscope import speedscope_file
    from queryprof.report.export.weights import call_path_weights, limit_nodes

    profile = read_combined_profile(file)
    left_out = SkippedInputNotes()
    for reason in profile.left_out:
        left_out.add(reason)
    nodes = PSTATS_NODES if form == "pstats" else None
    weights = limit_nodes(call_path_weights(profile), nodes)
    if form == "pstats":
        return pstats_file(weights)
    return speedscope_file(weights, f"{os.path.basename(file)}: database time")
