"""The report on spans, for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.report import Report
from queryprof.analysis.spans import RepeatSummary, SpanSummary
from queryprof.analysis.units import average, count, counted, duration, percent
from queryprof.report.places import Places
from queryprof.report.terminal.console import Text, borderless_table, heading_line
from queryprof.report.text.cards import repeat_in_words

SHOWN = 3
"""Maximum number of repeated queries on the first screen."""

STATEMENT_COLUMNS = 72


def repeat_summary(report: Report, places: Places) -> list[RenderableType]:
    """Return the repeated queries that have no bottleneck card, for the first screen."""
    parts: list[RenderableType] = []
    on_cards = {(card.statement, card.site.frame) for card in report.ranking.bottlenecks}
    repeats = [r for r in report.repeats if (r.statement, r.site.frame) not in on_cards]
    if repeats:
        parts.append(
            heading_line(
                f"The same query again and again in one span ({counted(len(repeats), 'place')};"
                " all: --by span)"
            )
        )
        parts += [_repeat_card(found, places) for found in repeats[:SHOWN]]
    return parts


def span_tables(report: Report, places: Places, wide: bool) -> list[RenderableType]:
    """Return the ended spans as a table, and the repeated queries; [] if no span has ended."""
    found, top = report.spans, report.top
    if not found:
        return []
    table = borderless_table("\nSpans, by wall time")
    names = ["count", "mean", "p95", "database", "queries", "p95", "max"]
    if wide:
        names = ["count", "mean", "p95", "max", "CPU", "database", "queries", "p95", "max"]
        names += ["errors", "statuses"]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("span", overflow="fold", ratio=1)
    for finding in found[:top]:
        table.add_row(*_span_row(finding, wide), finding.span.name[:500])
    parts: list[RenderableType] = [table]
    if top and len(found) > top:
        parts.append(Text(f"{len(found) - top} more: --top {len(found)}", style="dim"))
    repeats = report.repeats
    if repeats:
        parts.append(heading_line("The same query again and again in one span"))
        parts += [_repeat_card(finding, places) for finding in repeats[:top]]
    return parts


def _span_row(found: SpanSummary, wide: bool) -> list[str]:
    wall, queries = found.wall, found.queries
    figures = [count(found.span.count), duration(wall.mean_ns), duration(wall.p95_ns)]
    if wide:
        figures += [duration(wall.max_ns), duration(found.cpu_ns)]
    figures += [
        percent(found.database_share),
        average(queries.mean_ns),
        average(queries.p95_ns),
        average(queries.max_ns),
    ]
    if wide:
        statuses = ", ".join(f"{s}: {n:,}" for s, n in sorted(found.span.statuses.items()))
        figures += [count(found.span.errors), statuses]
    return figures


def _repeat_card(found: RepeatSummary, places: Places) -> RenderableType:
    head = Text(repeat_in_words(found), "red")
    site = Text(places.site(found.site), "cyan")
    for caller in found.site.callers[:1]:
        site.append(f"  <- {places.frame_text(caller)}", "default")
    lines = [head, site, Text(found.statement)]
    for line in lines[2:]:
        line.truncate(STATEMENT_COLUMNS, overflow="ellipsis")
    return Padding(Group(*lines), (0, 0, 0, 5))
