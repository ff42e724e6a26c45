"""`queryprof report`: reports on a trace."""

from __future__ import annotations

from importlib import import_module

import click

from queryprof.analysis.totals import SORT_KEYS
from queryprof.analysis.views import DIMENSIONS

RENDERERS = {
    "json": "queryprof.report.json.report:json_report",
    "csv": "queryprof.report.csv_report:csv_report",
    "markdown": "queryprof.report.markdown_report:markdown_report",
}
"""Imported when used: a command starts with what it needs."""


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--by", "dimension", type=click.Choice((*DIMENSIONS, "tree")), help="One breakdown alone."
)
@click.option(
    "--sort", type=click.Choice(tuple(SORT_KEYS)), default="total", show_default=True,
    help="What comes first.",
)  # fmt: skip
@click.option("--loop", is_flag=True, help="Event loops: lag, and what blocked them.")
@click.option("--locks", is_flag=True, help="Who waited for locks, who held them.")
@click.option("--slowest", is_flag=True, help="The slowest executions, with their stacks.")
@click.option("--top", type=click.IntRange(min=1), help="How many rows at the most.")
@click.option(
    "--format", "form", type=click.Choice(("table", *RENDERERS)), default="table",
    show_default=True,
)  # fmt: skip
def report(
    file: str,
    dimension: str | None,
    sort: str,
    loop: bool,
    locks: bool,
    slowest: bool,
    top: int | None,
    form: str,
) -> None:
    """Ranks the statements and call sites of FILE."""
    import gc

    from queryprof.analysis.report import TOP_SHOWN, Report
    from queryprof.report.inert import visible
    from queryprof.trace.reader import read_profile
    from queryprof.trace.recovery import bring_in

    views = {
        "--loop": loop,
        "--locks": locks,
        "--slowest": slowest,
        "--by tree": dimension == "tree",
    }
    chosen = [name for name, is_chosen in views.items() if is_chosen]
    if len(chosen) > 1 or (chosen and dimension not in (None, "tree")):
        raise click.UsageError(f"{chosen[0]} goes with no other breakdown")
    if chosen and form != "table" and (form, chosen) != ("json", ["--loop"]):
        raise click.UsageError(f"{chosen[0]} is a table alone: --format json has all of it")
    for recovered in bring_in(file):
        click.echo(
            f"queryprof: recovered what a process left that was killed: {visible(recovered)}",
            err=True,
        )
    gc.disable()  # a large trace is 100,000 objects that all stay to the end
    shown = top or ((2 * TOP_SHOWN if dimension else TOP_SHOWN) if form == "table" else None)
    found = Report(read_profile(file), sort, shown)
    if form in RENDERERS:
        module, _, name = RENDERERS[form].partition(":")
        click.echo(getattr(import_module(module), name)(found, dimension))
    elif loop:
        from queryprof.report.terminal.loops import print_loops

        print_loops(found)
    elif locks:
        from queryprof.report.terminal.locks import print_locks

        print_locks(found)
    elif slowest:
        from queryprof.report.terminal.slowest import print_slowest

        print_slowest(found)
    elif dimension == "tree":
        from queryprof.report.terminal.tree import print_tree

        print_tree(found)
    else:
        from queryprof.report.terminal.report import print_report, print_view

        if dimension is None:
            from queryprof.findings import findings_of

            print_report(found, findings=findings_of(found))
        else:
            print_view(found, dimension)
