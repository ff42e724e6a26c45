"""`queryprof compare`: compare traces from before and after a change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from queryprof.cli.output import allow_closed_output
from queryprof.errors import QueryprofError

if TYPE_CHECKING:
    from queryprof.comparing.comparison_result import Comparison, MetricChange, StatementChange
    from queryprof.report.places import Places

EXIT_REGRESSION = 1
GATES = ("counts", "plans", "vmsteps", "io", "time")
FORMATS = ("table", "json", "markdown", "junit", "github")


def _split_sides(arguments: tuple[str, ...]) -> list[list[str]]:
    """Return the files of both sides of BEFORE AFTER, or of BEFORE... :: AFTER...

    A directory stands for all traces in it.
    """
    if arguments.count("::") == 1:
        middle = arguments.index("::")
        sides = [arguments[:middle], arguments[middle + 1 :]]
    else:
        sides = [arguments[:1], arguments[1:]]
    if not all(sides) or (len(arguments) != 2 and "::" not in arguments):
        raise QueryprofError(
            "compare: give one trace per side, or several with :: between the sides"
            " (a1.qprof a2.qprof :: b1.qprof b2.qprof), or two directories of traces"
        )
    from queryprof.collect.given_traces import traces_for_argument

    return [[file for argument in side for file in traces_for_argument(argument)] for side in sides]


def comparison_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that compare traces: --fail-on and --format."""
    options = (
        click.option(
            "--fail-on",
            multiple=True,
            type=click.Choice((*GATES, "none")),
            help="Fail if this gets worse (repeatable).  [default: all of these]",
        ),
        click.option(
            "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def print_verdict(
    before: Sequence[str],
    after: Sequence[str],
    fail_on: tuple[str, ...],
    form: str,
) -> None:
    """Compare trace files, print the changes, and exit with status 1 if something got worse."""
    from queryprof.cli.reading import SkippedInputNotes
    from queryprof.collect.reader import read_profile
    from queryprof.comparing.comparison import compare, has_no_statements, regressions
    from queryprof.report.places import Places

    sides = [[read_profile(file) for file in side] for side in (before, after)]
    left_out = SkippedInputNotes()
    for profile in (one for side in sides for one in side):
        for reason in profile.left_out:
            left_out.add(reason)
    for side, name in zip(sides, ("before", "after"), strict=True):
        if has_no_statements(side):
            raise QueryprofError(f"compare: the traces of the {name} side have no executions")
    before_runs, after_runs = sides
    comparison = compare(before_runs, after_runs)
    failed = regressions(comparison, fail_on or GATES)
    with allow_closed_output():  # the verdict is the same, however much of the output is read
        _print_comparison(form, comparison, failed, Places(*sides[1], *sides[0]))
    if failed:
        sys.exit(EXIT_REGRESSION)


def _print_comparison(
    form: str,
    comparison: Comparison,
    failed: Sequence[StatementChange | MetricChange],
    places: Places,
) -> None:
    if form == "json":
        from queryprof.report.json.comparison import comparison_json

        click.echo(comparison_json(comparison))
    elif form == "markdown":
        from queryprof.report.comparison.markdown import comparison_markdown

        click.echo(comparison_markdown(comparison, places))
    elif form == "junit":
        from queryprof.report.comparison.junit import comparison_junit

        click.echo(comparison_junit(comparison, failed, places))
    elif form == "github":
        from queryprof.report.comparison.github import comparison_github

        click.echo(comparison_github(failed, places), nl=bool(failed))
    else:
        from queryprof.report.terminal.comparison import print_comparison

        print_comparison(comparison, places)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="BEFORE... [::] AFTER...")
@comparison_options
def compare(files: tuple[str, ...], **judgement: Any) -> None:
    """Compare traces from before and after a change.

    With several traces, put `::` between the sides. The exit status is 1 if something got worse.
    Comparing times needs six or more traces on each side.
    """
    before, after = _split_sides(files)
    print_verdict(before, after, **judgement)
