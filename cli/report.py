"""`queryprof report`: what a trace says."""

from __future__ import annotations

import click

from queryprof.analysis.totals import SORT_KEYS
from queryprof.analysis.views import DIMENSIONS

TOP_TABLE = 10


@click.command()
@click.argument("file", type=click.Path())
@click.option("--by", "dimension", type=click.Choice(DIMENSIONS), help="One breakdown alone.")
@click.option(
    "--sort", type=click.Choice(tuple(SORT_KEYS)), default="total", show_default=True,
    help="What comes first.",
)  # fmt: skip
@click.option("--loop", is_flag=True, help="The event loops: lag, and what stood in their way.")
@click.option("--top", type=click.IntRange(min=1), help="How many rows at the most.")
@click.option(
    "--format", "form", type=click.Choice(("table", "json", "csv", "markdown")), default="table",
    show_default=True,
)  # fmt: skip
def report(
    file: str, dimension: str | None, sort: str, loop: bool, top: int | None, form: str
) -> None:
    """Ranks what the trace FILE says: which statements and call sites the time went to."""
    import gc

    from queryprof.report.inert import visible
    from queryprof.trace.reader import read_profile
    from queryprof.trace.recovery import bring_in

    if loop and (dimension or form in ("csv", "markdown")):
        raise click.UsageError("--loop goes with neither --by nor csv and markdown")
    for recovered in bring_in(file):
        click.echo(
            f"queryprof: recovered what a process left that was killed: {visible(recovered)}",
            err=True,
        )
    gc.disable()  # a large trace is 100,000 objects that all stay to the end
    profile = read_profile(file)
    if form == "json":
        from queryprof.report.json.report import json_report

        click.echo(json_report(profile, dimension, sort, top))
    elif form == "csv":
        from queryprof.report.csv_report import csv_report

        click.echo(csv_report(profile, dimension, sort, top))
    elif form == "markdown":
        from queryprof.report.markdown_report import markdown_report

        click.echo(markdown_report(profile, dimension, sort, top))
    elif loop:
        from queryprof.report.terminal.loops import print_loops

        print_loops(profile, top=top or TOP_TABLE)
    elif dimension is None:
        from queryprof.report.terminal.report import print_report

        print_report(profile, top=top or TOP_TABLE, sort=sort)
    else:
        from queryprof.report.terminal.report import print_view

        print_view(profile, dimension, top=top or 2 * TOP_TABLE, sort=sort)
