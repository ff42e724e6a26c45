"""`queryprof report`: reports on a trace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

import click

from queryprof.analysis.totals import SORT_KEYS
from queryprof.analysis.views import DIMENSIONS

if TYPE_CHECKING:
    from queryprof.analysis.report import Report

RENDERERS = {
    "csv": "queryprof.report.csv_report:csv_report",
    "markdown": "queryprof.report.markdown_report:markdown_report",
}
"""Imported when used: a command starts with what it needs."""

VIEWS = {
    "--loop": "queryprof.report.terminal.loops:print_loops",
    "--locks": "queryprof.report.terminal.locks:print_locks",
    "--slowest": "queryprof.report.terminal.slowest:print_slowest",
    "--slowest-requests": "queryprof.report.terminal.slowest_spans:print_slowest_spans",
    "--by tree": "queryprof.report.terminal.tree:print_tree",
    "--by time": "queryprof.report.terminal.timeline:print_timeline",
}
"""By what chooses it: a report of one kind, which is a table alone."""


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--by",
    "dimension",
    type=click.Choice((*DIMENSIONS, "tree", "time")),
    help="One breakdown alone.",
)
@click.option(
    "--sort",
    type=click.Choice(tuple(SORT_KEYS)),
    default="total",
    show_default=True,
    help="What comes first.",
)
@click.option("--loop", is_flag=True, help="Event loops: lag, and what blocked them.")
@click.option("--locks", is_flag=True, help="Who waited for locks, who held them.")
@click.option("--slowest", is_flag=True, help="The slowest executions, with their stacks.")
@click.option(
    "--slowest-requests", is_flag=True, help="The slowest requests and spans, call by call."
)
@click.option("--top", type=click.IntRange(min=1), help="How many rows at the most.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "json", *RENDERERS)),
    default="table",
    show_default=True,
)
def report(
    file: str,
    dimension: str | None,
    sort: str,
    loop: bool,
    locks: bool,
    slowest: bool,
    slowest_requests: bool,
    top: int | None,
    form: str,
) -> None:
    """Ranks the statements and call sites of FILE."""
    from queryprof.analysis.report import TOP_SHOWN, Report
    from queryprof.cli.reading import read_whole

    options = {
        "--loop": loop,
        "--locks": locks,
        "--slowest": slowest,
        "--slowest-requests": slowest_requests,
    }
    chosen = [name for name, is_chosen in options.items() if is_chosen]
    if f"--by {dimension}" in VIEWS:
        chosen.append(f"--by {dimension}")
    elif chosen and dimension:
        chosen.append(dimension)
    if len(chosen) > 1:
        raise click.UsageError(f"{chosen[0]} goes with no other breakdown")
    if chosen and form != "table" and (form, chosen) != ("json", ["--loop"]):
        raise click.UsageError(f"{chosen[0]} is a table alone: --format json has all of it")
    shown = top or ((2 * TOP_SHOWN if dimension else TOP_SHOWN) if form == "table" else None)
    found = Report(read_whole(file), sort, shown)
    if form == "json":
        _print_json(found, dimension)
    elif form in RENDERERS:
        click.echo(_imported(RENDERERS[form])(found, dimension))
    elif chosen:
        _imported(VIEWS[chosen[0]])(found)
    else:
        from queryprof.report.terminal.report import print_report, print_view

        if dimension is None:
            from queryprof.findings import findings_of

            print_report(found, findings=findings_of(found), beyond=top is not None)
        else:
            print_view(found, dimension)


def _print_json(found: Report, dimension: str | None) -> None:
    """In pieces: the whole of a large report would take as much memory again."""
    from queryprof.report.json.report import json_report

    sys.stdout.writelines(json_report(found, dimension))
    sys.stdout.flush()


def _imported(place: str) -> Callable[..., str]:
    module, _, name = place.partition(":")
    function: Callable[..., str] = getattr(import_module(module), name)
    return function
