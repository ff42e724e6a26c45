"""Query results about a fleet, for a terminal: one card per row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from rich.console import RenderableType
from rich.padding import Padding

from queryprof.analysis.units import (
    UNKNOWN,
    average,
    count,
    counted,
    duration,
    format_factor,
    percent,
    shorten,
)
from queryprof.report.terminal.console import Text, console_for, heading_line, print_parts

Record = Mapping[str, Any]
Card = tuple[str, str, tuple[str, ...]]
"""(bold heading, call site or host, further lines)."""

MAX_STATEMENT_CHARACTERS = 400
"""Length limit of a statement, in characters."""

MIN_SHARE = 0.01
"""A kind of file work is shown if it takes at least this share of a statement's time."""


def print_cards(
    title: str,
    cards: Sequence[Card],
    left_out: int = 0,
    file: TextIO | None = None,
) -> None:
    """Print cards below a title. If `left_out` is positive, also print how many cards are missing
    and which option shows all.
    """
    parts: list[RenderableType] = [heading_line(title)]
    for head, site, lines in cards:
        parts.append(Text())
        parts.append(Text.assemble("  ", (head, "bold"), ("  " + site if site else "", "cyan")))
        parts += [Padding(Text(line), (0, 0, 0, 5)) for line in lines if line]
    if left_out > 0:
        parts += [Text(), Text(f"{left_out:,} more: --format json", style="dim")]
    print_parts(console_for(file), parts)


def ranking_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for the vital few."""
    return [_ranking_card(row) for row in rows]


def _ranking_card(row: Record) -> Card:
    ns = row["seconds"] * 1e9
    executions = row["executions"] or row["calls"]
    head = (
        f"{row['rank']}  {percent(row['share'] or 0.0)}  {duration(ns)}  {count(executions)} x"
        f" {duration(ns / executions if executions else None)}"
    )
    shares = ("p50", "p95", "p99", "max")
    distribution = "  ".join(f"{one} {duration(row[f'{one}_ns'])}" for one in shares)
    files = [
        f"{part} {duration(row[f'{part}_seconds'] * 1e9)}"
        for part in ("lock", "sync", "read", "write")
        if (row[f"{part}_seconds"] or 0.0) > MIN_SHARE * row["seconds"]
    ]
    steps = row["vm_steps"]
    work = [
        f"each: rows {average(row['fetched_rows'] / executions)}" if executions else "",
        f"VM steps {average(steps / executions)}" if steps is not None and executions else "",
    ]
    statements = counted(row["statements"], "statement") if not row["statement"] else ""
    statement = (
        shorten(row["statement"], MAX_STATEMENT_CHARACTERS) if row["statement"] else statements
    )
    return (
        head,
        row["site"] or row["host"] or "",
        (
            statement,
            distribution,
            "  ".join(filter(None, work)) + ("  files: " + "  ".join(files) if files else ""),
            f"{host_count_in_words(row)}, {period_in_words(row)}",
        ),
    )


def period_in_words(row: Record) -> str:
    """Return a row's period, from first_seen to last_seen, in UTC."""
    return f"{time_in_utc(row['first_seen'])} to {time_in_utc(row['last_seen'])} UTC"


def time_in_utc(when: datetime | None) -> str:
    """Format a time in UTC."""
    return f"{when:%Y-%m-%d %H:%M}" if when else UNKNOWN


def host_count_in_words(row: Record) -> str:
    """Return the number of hosts. It is unknown in rows that combine several hosts."""
    return counted(row["hosts"], "host") if row["hosts"] else "unknown hosts"


def outlier_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for hosts where a statement is slower than on the median host."""
    return [
        (
            f"{_seconds_in_words(row['lost_seconds'])} lost",
            row["host"] or "(unknown)",
            (
                row["statement"],
                (
                    f"{format_factor(row['times'])}: {duration(row['mean_ns'])} each, on the"
                    " median host"
                    f" {duration(row['usual_ns'])}, {counted(int(row['executions']), 'execution')}"
                ),
                f"and {counted(row['statements'] - 1, 'more statement')}"
                if row["statements"] > 1
                else "",
            ),
        )
        for row in rows
    ]


def _seconds_in_words(seconds: float | None) -> str:
    return duration(None if seconds is None else seconds * 1e9)


def trend_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for statements that got slower."""
    return [
        (
            (
                f"{row['since_day']}  {format_factor(row['times'])} "
                f" {_seconds_in_words(row['cost_seconds'])} since"
            ),
            f"the main version changed to {row['version']} that day" if row["version"] else "",
            (
                row["statement"],
                f"{duration(row['mean_before_ns'])} -> {duration(row['mean_after_ns'])}",
            ),
        )
        for row in rows
    ]


def plan_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for statements with several plans."""
    found: dict[str, list[Record]] = {}
    for row in rows:
        found.setdefault(row["statement_id"], []).append(row)
    return [
        (counted(len(plans), "plan"), "", (plans[0]["statement"], *_plan_lines(plans)))
        for plans in found.values()
    ]


def _plan_lines(plans: Iterable[Record]) -> Iterable[str]:
    for row in plans:
        who = f" ({row['host']})" if row["hosts"] == 1 and row["host"] else ""
        yield f"{host_count_in_words(row)}{who}: {row['plan'].replace(chr(10), '; ')}"


def finding_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for the findings of the fleet."""
    return [
        (
            f"{row['category']}  {duration((row['gain_seconds_a_day'] or 0.0) * 1e9)} per day",
            row["site"] or "",
            (
                row["fix"] or "",
                f"{host_count_in_words(row)}, {period_in_words(row)}"
                + (f", first with version {row['version']}" if row["version"] else ""),
            ),
        )
        for row in rows
    ]


def slower_statement_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for statements whose time changed with a version."""
    return [
        (
            (
                f"{format_factor(row['ratio'])} ({format_factor(row['low'])} to"
                f" {format_factor(row['high'])})"
            ),
            "",
            (
                row["statement"],
                (
                    f"{duration(row['mean_before_ns'])} -> {duration(row['mean_after_ns'])} on"
                    f" {row['hosts_before']:.0f} and {counted(int(row['hosts_after']), 'host')},"
                    f" {_cost_in_words(row)}"
                ),
            ),
        )
        for row in rows
    ]


def _cost_in_words(row: Record) -> str:
    cost = row["cost_seconds_a_day"]
    return f"{duration(abs(cost) * 1e9)} per day {'more' if cost > 0 else 'less'}"


def vm_step_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for statements that take more VM steps."""
    return [
        (
            format_factor(row["vm_steps_after"] / row["vm_steps_before"]),
            "",
            (
                row["statement"],
                (
                    f"VM steps each: {average(row['vm_steps_before'])} ->"
                    f" {average(row['vm_steps_after'])}"
                ),
            ),
        )
        for row in rows
    ]


def executions_per_span_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for statements that run more often per span."""
    return [
        (
            f"{row['each_before']:,.3g} -> {row['each_after']:,.3g} in each",
            row["span"],
            (row["statement"],),
        )
        for row in rows
    ]


def new_plan_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for plans that appeared with a version."""
    return [
        (
            host_count_in_words(row),
            f"since {time_in_utc(row['first_seen'])} UTC",
            (row["statement"], row["plan"].replace("\n", "; ")),
        )
        for row in rows
    ]


def new_finding_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for findings that appeared with a version."""
    return [
        (
            f"{row['category']}  {_seconds_in_words(row['gain_seconds'])}",
            row["site"] or "",
            (row["fix"] or "", f"{host_count_in_words(row)}"),
        )
        for row in rows
    ]


def new_and_gone_cards(rows: Sequence[Record]) -> list[Card]:
    """Return cards for statements that only one of two versions has."""
    return [
        (
            f"{row['change']}  {_seconds_in_words(row['seconds'])}",
            row["site"] or "",
            (row["statement"],),
        )
        for row in rows
    ]


CARDS: Mapping[str, Callable[[Sequence[Record]], list[Card]]] = {
    "outliers": outlier_cards,
    "trend": trend_cards,
    "plans": plan_cards,
    "findings": finding_cards,
}
"""The function that makes the cards for the rows of each fleet query."""
