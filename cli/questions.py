"""Commands that query a fleet's recordings: `queryprof fleet report`, `compare`, `outliers` ..."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from queryprof.cli.amounts import NamedValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from queryprof.fleet.comparison import FleetComparison
    from queryprof.fleet.duck import Engine, Selection

EXIT_LEFT_OUT = EXIT_WORSE = 1
BY = ("few", "statement", "site", "host")
GATES = ("time", "vmsteps", "counts", "plans", "findings")
"""Checks that can fail; see queryprof.fleet.comparison."""

PERIODS = {"h": "hours", "d": "days", "w": "weeks"}
SHOWN = 10
"""Maximum number of rows in a table. JSON has all rows."""

ALL_ROWS = 2**31 - 1

NOTHING = "Nothing took time in the database"
TITLES = {
    "outliers": "Hosts where a statement takes more than 3 times as long as on the median host",
    "trend": "Statements more than 20% slower than in the seven days before",
    "plans": "Statements with more than one plan",
    "findings": "Findings",
}


class PeriodType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
    """START..END or START: dates, times (UTC) or ages.

    The value is (start, end). None stands for an open start or end.
    """

    name = "period"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[datetime | None, datetime | None]:
        """Read a period."""
        if isinstance(value, tuple):
            return value
        start, _, end = str(value).partition("..")
        try:
            if not start + end:
                raise ValueError
            return _parse_instant(start), _parse_instant(end)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r}: write 36h, 7d, 2w, 2026-11-01, 2026-11-01T06:00 or START..END",
                param,
                ctx,
            )


def _parse_instant(text: str) -> datetime | None:
    """Parse a date or a time (UTC), or an age such as 7d before now. Raises ValueError."""
    if not text:
        return None
    if text[-1:] in PERIODS and text[:-1].isdecimal():
        return datetime.now(UTC) - timedelta(**{PERIODS[text[-1]]: int(text[:-1])})
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)


def selection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument `places` and the options `during` and `where` that select recordings."""
    for option in (
        click.option(
            "--during",
            type=PeriodType(),
            default=(None, None),
            show_default=False,
            metavar="PERIOD",
            help="Only this period: 7d, 2026-11-01 or START..END (UTC).",
        ),
        click.option(
            "--where",
            type=NamedValue(("service", "version", "environment", "host")),
            multiple=True,
            help="Only recordings with this service, version, environment or host (repeatable).",
        ),
        click.argument("places", type=click.Path(), nargs=-1, required=True),
    ):
        command = option(command)
    return command


FORMAT = click.option(
    "--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True
)


@click.command()
@click.option("--by", type=click.Choice(BY), default="few", show_default=True, help="What to rank.")
@FORMAT
@selection_options
def report(places: tuple[str, ...], by: str, form: str, **selected: Any) -> None:
    """Rank the statements and call sites that took most time.

    The times are sums over all hosts of PLACES. These are directories of Parquet files, stores
    (s3://...) or traces.
    """
    from queryprof.cli.fleet_places import opened_places
    from queryprof.cli.output import allow_closed_output

    selection = _parse_selection(selected)
    rows_of = {"table": 0, "json": ALL_ROWS}  # 0: the vital few
    with opened_places(places, selection) as (engine, notes):
        engine.refuse_nothing(selection)
        rows = engine.answer("ranking", selection, by=by, top=rows_of[form]).records()
        with allow_closed_output():
            _print_ranking(rows, by, form)
    notes.print()
    sys.exit(EXIT_LEFT_OUT if notes.left_out else 0)


def _question_command(name: str, summary: str) -> click.Command:
    """Return a command that runs the fleet query `name` on one service and prints its rows."""

    @click.command(name, help=summary)
    @FORMAT
    @selection_options
    def command(places: tuple[str, ...], form: str, **selected: Any) -> None:
        from queryprof.cli.fleet_places import opened_places
        from queryprof.cli.output import allow_closed_output

        selection = _parse_selection(selected)
        with opened_places(places, selection) as (engine, notes):
            engine.refuse_nothing(selection)
            engine.refuse_several(selection)
            with allow_closed_output():
                _print_answer(engine, selection, name, form)
        notes.print()
        sys.exit(EXIT_LEFT_OUT if notes.left_out else 0)

    return command


outliers = _question_command("outliers", "Show hosts that are slower than the others.")
trend = _question_command("trend", "Show statements that got slower.")
plans = _question_command("plans", "Show statements with more than one plan.")
findings = _question_command("findings", "Show the findings of all hosts.")


@click.command()
@click.argument("before", metavar="V1")
@click.argument("after", metavar="V2")
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice((*GATES, "none")),
    help="Fail if this gets worse (repeatable).  [default: all]",
)
@FORMAT
@selection_options
def compare(
    places: tuple[str, ...],
    before: str,
    after: str,
    fail_on: tuple[str, ...],
    form: str,
    **selected: Any,
) -> None:
    """Show what got worse from version V1 to version V2."""
    from queryprof.cli.fleet_extra import fleet_extra_imports
    from queryprof.cli.fleet_places import opened_places
    from queryprof.cli.output import allow_closed_output

    selection = _parse_selection(selected)
    with fleet_extra_imports():
        from queryprof.fleet.comparison import compare_versions
    with opened_places(places, selection) as (engine, notes):
        engine.refuse_nothing(selection)
        engine.refuse_several(selection)
        comparison = compare_versions(engine, selection, before, after)
        worse = comparison.worse(fail_on or GATES)
        with allow_closed_output():
            _print_comparison(comparison, worse, form)
    notes.print()
    sys.exit(EXIT_WORSE if worse else EXIT_LEFT_OUT if notes.left_out else 0)


def _parse_selection(selected: dict[str, Any]) -> Selection:
    from queryprof.cli.fleet_extra import fleet_extra_imports

    with fleet_extra_imports():
        from queryprof.fleet.duck import Selection
    since, until = selected["during"]
    return Selection(since=since, until=until, **dict(selected["where"]))


def _print_ranking(rows: list[dict[str, Any]], by: str, form: str) -> None:
    from queryprof.report.terminal.fleet import print_cards, ranking_cards

    if form == "json":
        _print_json(rows)
        return
    more = rows[0]["all_groups"] - len(rows) if rows else 0
    print_cards(_ranking_title(rows, by) if rows else NOTHING, ranking_cards(rows), more)


def _print_answer(engine: Engine, selection: Selection, question: str, form: str) -> None:
    from queryprof.report.terminal.fleet import CARDS, print_cards

    rows = engine.answer(question, selection).records()
    if form == "json":
        _print_json(rows)
        return
    cards = CARDS[question](rows)
    shown = cards[:SHOWN]
    title = TITLES[question] if cards else f"{TITLES[question]}: none"
    print_cards(title, shown, len(cards) - len(shown))


def _ranking_title(rows: list[dict[str, Any]], by: str) -> str:
    from queryprof.analysis.units import count, counted, duration, percent

    first = rows[0]
    what = {"few": "statement and line pairs", "site": "call sites"}.get(by, f"{by}s")
    shown = sum(row["share"] or 0.0 for row in rows)
    whole = duration(first["all_seconds"] * 1e9)
    hosts = counted(max(row["hosts"] for row in rows), "host")
    return (
        f"The vital few: {len(rows):,} of {count(first['all_groups'])} {what} account for"
        f" {percent(shown)} of {whole} in the database, on up to {hosts}"
        + (f" ({first['vital_groups']:,} make up 80%)" if first["vital_groups"] > len(rows) else "")
    )


def _print_comparison(comparison: FleetComparison, worse: dict[str, int], form: str) -> None:
    from queryprof.analysis.units import counted
    from queryprof.report.terminal import fleet as terminal

    if form == "json":
        _print_json({**asdict(comparison), "worse": worse})
        return
    sections = (
        ("Slower", terminal.slower_statement_cards, comparison.slower),
        ("More VM steps in each execution", terminal.vm_step_cards, comparison.more_steps),
        ("Executed more often", terminal.executions_per_span_cards, comparison.requests),
        ("New plans", terminal.new_plan_cards, comparison.plans),
        ("New findings", terminal.new_finding_cards, comparison.findings),
        ("Faster", terminal.slower_statement_cards, comparison.faster),
        ("New and gone statements", terminal.new_and_gone_cards, comparison.statements),
    )
    for title, cards, rows in sections:
        if rows:
            found = cards(rows[:SHOWN])
            named = f"{title} with version {comparison.after} than with {comparison.before}"
            titled = title if title.startswith("New") else named
            terminal.print_cards(f"{titled}: {len(rows):,}", found, len(rows) - len(found))
    verdict = ", ".join(f"{gate} {number:,}" for gate, number in worse.items())
    click.echo()
    click.echo(
        f"{counted(comparison.same, 'statement')} unchanged; {comparison.unclear:,} unclear"
        " (fewer than 8 hosts per side, hosts too different, or contradicted by a rank test)"
    )
    for gate, why in comparison.unchecked_gates.items():
        click.echo(f"not checked: {gate}: {why}")
    click.echo(f"worse: {verdict}" if worse else "nothing got worse")


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, default=_json_value))


def _json_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    return str(value)
