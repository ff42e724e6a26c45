"""`queryprof fleet`: questions about the recordings of many hosts."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from queryprof.fleet.comparison import FleetComparison
    from queryprof.fleet.duck import Engine, Selection

EXIT_LEFT_OUT = EXIT_WORSE = 1
BY = ("few", "statement", "site", "host")
GATES = ("time", "vmsteps", "counts", "plans", "findings")
"""What may fail; as queryprof.fleet.comparison has it."""

COMPARED = ("compare", "requests", "new_plans", "new_findings", "new_statements")
"""The questions of --compare."""

PERIODS = {"h": "hours", "d": "days", "w": "weeks"}
SHOWN = 10
NOTHING = "Nothing took time in the database"
TITLES = {
    "outliers": "Hosts on which statements take more than 3 times what they do on the median host",
    "trend": "Statements that got a fifth slower than in the seven days before",
    "plans": "Statements with more than one plan",
    "findings": "Findings",
}


def _instant(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> datetime | None:
    """A date or time in UTC, or how long ago: 2026-11-01, 2026-11-01T06:00, 36h, 7d, 2w."""
    if value is None:
        return None
    try:
        if value[-1:] in PERIODS and value[:-1].isdecimal():
            return datetime.now(UTC) - timedelta(**{PERIODS[value[-1]]: int(value[:-1])})
        found = datetime.fromisoformat(value)
        return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is no time: 2026-11-01, 2026-11-01T06:00, 36h, 7d or 2w"
        ) from None


class WithCompact(click.Command):
    """The command, and `fleet compact`."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Of the one that is meant."""
        if args[:1] == ["compact"]:
            from queryprof.cli.compact import compact

            found: click.Context = compact.make_context(
                f"{info_name} compact", args[1:], parent, **extra
            )
            return found
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=WithCompact)
@click.argument("places", type=click.Path(), nargs=-1, required=True)
@click.option("--by", type=click.Choice(BY), default="few", help="What is ranked.")
@click.option(
    "--compare", "versions", nargs=2, metavar="V1 V2", help="What got worse with version V2."
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice((*GATES, "nothing")),
    help="With --compare: what must not get worse; may be given more than once.  [default: all]",
)
@click.option(
    "--outliers", "question", flag_value="outliers", help="Hosts that are slower than the others."
)
@click.option("--trend", "question", flag_value="trend", help="Statements that got slower.")
@click.option("--plans", "question", flag_value="plans", help="Statements with several plans.")
@click.option("--findings", "question", flag_value="findings", help="The findings of all hosts.")
@click.option(
    "--fetch", "output", type=click.Path(), help="One trace of the sampled hosts, for `report`."
)
@click.option("--service", help="Of this service alone ...")
@click.option("--version", help="... this version ...")
@click.option("--environment", help="... this environment ...")
@click.option("--host", help="... this host ...")
@click.option("--since", callback=_instant, help="... from then on: 7d, 2026-11-01 ...")
@click.option("--until", callback=_instant, help="... up to then.")
@click.option("--top", type=click.IntRange(min=1), help="How many rows.")
@click.option(
    "--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True
)
@click.option(
    "--cache", type=click.Path(), help="Where copies of a store's files are kept, 20 GB at most."
)
@click.option("--sql", "shows_sql", is_flag=True, help="Shows the question in SQL instead.")
def fleet(
    places: tuple[str, ...],
    by: str,
    versions: tuple[str, str] | None,
    fail_on: tuple[str, ...],
    question: str | None,
    top: int | None,
    form: str,
    shows_sql: bool,
    output: str | None,
    cache: str | None,
    **selected: Any,
) -> None:
    """Answers questions about a fleet: PLACES are directories of Parquet files
    (`queryprof export --format parquet`, `queryprof ship`), stores (s3://...), or traces.

    Without an option: the statements and call sites that most of the database time of all hosts
    went to.
    """
    if bool(versions) + bool(question) + (output is not None) + (by != "few") > 1:
        raise click.UsageError("one question at a time: --by, --compare, --outliers, ...")
    if fail_on and not versions:
        raise click.UsageError("--fail-on goes with --compare")
    from queryprof.cli.fleet_extra import fleet_extra
    from queryprof.cli.fleet_places import opened
    from queryprof.cli.output import output_to_reader

    with fleet_extra():
        from queryprof.fleet.comparison import compare_versions
        from queryprof.fleet.duck import Selection
    selection = Selection(**selected)
    if output is not None:
        sys.exit(_fetch(output, places, selection, cache))
    with opened(places, selection, cache) as (engine, notes):
        if shows_sql:
            names = COMPARED if versions else (question or "ranking",)
            click.echo("\n".join(engine.text(name) for name in names).rstrip())
            return
        engine.refuse_nothing(selection)
        if versions or question:
            engine.refuse_several(selection)
        is_worse = False
        if versions:
            comparison = compare_versions(engine, selection, *versions)
            worse = comparison.worse(fail_on or GATES)
            is_worse = bool(worse)
        with output_to_reader():
            if versions:
                _print_comparison(comparison, worse, top, form)
            else:
                _answer(engine, selection, question, by, top, form)
    notes.print()
    sys.exit(EXIT_WORSE if is_worse else EXIT_LEFT_OUT if notes.left_out else 0)


def _fetch(output: str, places: tuple[str, ...], selection: Selection, cache: str | None) -> int:
    """Makes one trace of the whole traces of what is selected; returns the exit status."""
    from queryprof.analysis.units import counted
    from queryprof.cli.fleet_places import whole_traces
    from queryprof.cli.output import print_message
    from queryprof.cli.progress import progress
    from queryprof.fleet.fetched import chosen_traces, fetch

    traces, left_out = chosen_traces(whole_traces(places, selection, cache), selection)
    with progress("merging", len(traces)) as step:
        repeated, damaged = fetch(output, traces, step)
    if repeated:
        print_message(f"{counted(repeated, 'window')} in more than one trace: counted with each")
    left_out += damaged
    for reason in left_out:
        print_message(f"left out: {reason}")
    fetched = len(traces) - len(damaged)
    print_message(f"{output}: {counted(fetched, 'trace')} of the fleet, added up")
    return EXIT_LEFT_OUT if left_out else 0


def _answer(
    engine: Engine,
    selection: Selection,
    question: str | None,
    by: str,
    top: int | None,
    form: str,
) -> None:
    from queryprof.report.terminal.fleet import CARDS, print_cards, ranking_cards

    if question is None:
        rows = engine.answer("ranking", selection, by=by, top=top or 0).records()
        if form == "json":
            _print_json(rows)
            return
        more = rows[0]["all_groups"] - len(rows) if rows else 0
        print_cards(_title(rows, by) if rows else NOTHING, ranking_cards(rows), more)
        return
    rows = engine.answer(question, selection).records()
    if form == "json":
        _print_json(rows[:top])
        return
    cards = CARDS[question](rows)
    shown = cards[: top or SHOWN]
    title = TITLES[question] if cards else f"{TITLES[question]}: none"
    print_cards(title, shown, len(cards) - len(shown))


def _title(rows: list[dict[str, Any]], by: str) -> str:
    from queryprof.analysis.units import count, counted, duration, percent

    first = rows[0]
    what = {"few": "statements and call sites", "site": "call sites"}.get(by, f"{by}s")
    shown = sum(row["share"] or 0.0 for row in rows)
    whole = duration(first["all_seconds"] * 1e9)
    hosts = counted(max(row["hosts"] for row in rows), "host")
    return (
        f"The vital few: {len(rows):,} of {count(first['all_groups'])} {what} make up"
        f" {percent(shown)} of {whole} in the database, on up to {hosts}"
        + (f" ({first['vital_groups']:,} make up 80%)" if first["vital_groups"] > len(rows) else "")
    )


def _print_comparison(
    comparison: FleetComparison, worse: dict[str, int], most: int | None, form: str
) -> None:
    from queryprof.analysis.units import counted
    from queryprof.report.terminal import fleet as terminal

    if form == "json":
        _print_json({**asdict(comparison), "worse": worse})
        return
    top = most or SHOWN
    sections = (
        ("Slower on the hosts", terminal.slower_cards, comparison.slower),
        ("More VM steps in each execution", terminal.step_cards, comparison.more_steps),
        ("Executed more often", terminal.request_cards, comparison.requests),
        ("New plans", terminal.new_plan_cards, comparison.plans),
        ("New findings", terminal.new_finding_cards, comparison.findings),
        ("Faster", terminal.slower_cards, comparison.faster),
        ("New and gone statements", terminal.statement_cards, comparison.statements),
    )
    for title, cards, rows in sections:
        if rows:
            found = cards(rows[:top])
            named = f"{title} with version {comparison.after} than with {comparison.before}"
            titled = title if title.startswith("New") else named
            terminal.print_cards(f"{titled}: {len(rows):,}", found, len(rows) - len(found))
    verdict = ", ".join(f"{gate} {number:,}" for gate, number in worse.items())
    click.echo()
    click.echo(
        f"{counted(comparison.same, 'statement')} as before; {comparison.unclear:,} unclear: of"
        " fewer than 8 hosts with one of the versions, or hosts that differ too much"
    )
    for gate, why in comparison.unknown.items():
        click.echo(f"not known: {gate}: {why}")
    click.echo(f"worse: {verdict}" if worse else "nothing that was looked at got worse")


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    return str(value)
