"""`queryprof report`: print a report on a trace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

import click

from queryprof.analysis.totals import SORT_KEYS
from queryprof.analysis.views import DIMENSIONS
from queryprof.cli.reading import trace_argument

if TYPE_CHECKING:
    from queryprof.analysis.report import Report

VIEWS = {
    "loops": "queryprof.report.terminal.loops:print_loops",
    "locks": "queryprof.report.terminal.locks:print_locks",
    "slowest": "queryprof.report.terminal.slowest:print_slowest",
    "slowest-requests": "queryprof.report.terminal.slowest_spans:print_slowest_spans",
    "tree": "queryprof.report.terminal.tree:print_tree",
    "time": "queryprof.report.terminal.timeline:print_timeline",
}
"""The views of --show, as "module:function". Each function prints a table."""


def _print_schema(context: click.Context, _: click.Parameter, name: str | None) -> None:
    if name is None or context.resilient_parsing:
        return
    import json

    from queryprof.report.json.schema import document_schema

    click.echo(json.dumps(document_schema(name), indent=1))
    context.exit()


@click.command()
@trace_argument
@click.option(
    "--by",
    "dimension",
    type=click.Choice(DIMENSIONS),
    help="Print only the totals by this dimension.",
)
@click.option(
    "--show",
    type=click.Choice(tuple(VIEWS)),
    help="Print one view: event loops, locks, the slowest executions or requests, the tree of"
    " callers, or calls over time.",
)
@click.option(
    "--sort",
    type=click.Choice(tuple(SORT_KEYS)),
    default="time",
    show_default=True,
    help="Order of the rows.",
)
@click.option("--top", type=click.IntRange(min=1), help="Rows to print.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "json", "markdown")),
    default="table",
    show_default=True,
)
@click.option(
    "--schema",
    type=click.Choice(("report", "findings", "comparison")),
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of report, analyze or compare, and exit.",
)
def report(
    file: str,
    dimension: str | None,
    show: str | None,
    sort: str,
    top: int | None,
    form: str,
) -> None:
    """Print the statements and lines that took most time.

    FILE is a trace, a directory of traces, or a glob pattern.
    """
    from queryprof.analysis.report import TOP_SHOWN, Report
    from queryprof.cli.reading import read_combined_profile

    if show and dimension:
        raise click.UsageError("--show and --by cannot be combined")
    if show and form != "table" and (form, show) != ("json", "loops"):
        raise click.UsageError(f"--show {show} is only a table; --format json has all data")
    shown = top or ((2 * TOP_SHOWN if dimension else TOP_SHOWN) if form == "table" else None)
    found = Report(read_combined_profile(file), sort, shown)
    if form == "json":
        _print_json(found, dimension)
    elif form == "markdown":
        from queryprof.report.markdown_report import markdown_report

        click.echo(markdown_report(found, dimension))
    elif show:
        _import_function(VIEWS[show])(found)
    else:
        from queryprof.report.terminal.report import print_report, print_view

        if dimension is None:
            from queryprof.findings.lookup import findings_of

            print_report(found, findings=findings_of(found), beyond=top is not None)
        else:
            print_view(found, dimension)


def _print_json(found: Report, dimension: str | None) -> None:
    """Print the JSON in pieces: the whole text of a large report would double the memory."""
    from queryprof.report.json.report import json_report

    sys.stdout.writelines(json_report(found, dimension))
    sys.stdout.flush()


def _import_function(place: str) -> Callable[..., str]:
    module, _, name = place.partition(":")
    function: Callable[..., str] = getattr(import_module(module), name)
    return function
