"""A comparison for a terminal, with rich."""

from __future__ import annotations

from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.units import average
from queryprof.comparing.comparison_result import Comparison, MetricChange, StatementChange, Verdict
from queryprof.report.places import Places
from queryprof.report.terminal.comparison_chart import charts_side_by_side
from queryprof.report.terminal.console import (
    Text,
    borderless_table,
    console_for,
    heading_line,
    print_parts,
    separate_lines,
)
from queryprof.report.terminal.sql import SqlText
from queryprof.report.text.comparison import (
    change_in_percent,
    comparison_summary,
    metric_name,
    metric_value,
    run_totals_sentence,
    verdict_cautions,
)
from queryprof.report.text.plans import plans_before_and_after, worse_plan_reason

CHARTED_INTERVALS = 4
"""Minimum number of intervals of a run for a chart. An interval lasts at least 1/8 second."""

STYLES = {
    Verdict.WORSE: "bold red",
    Verdict.BETTER: "bold green",
    Verdict.SAME: "dim",
    Verdict.UNCLEAR: "yellow",
}


def print_comparison(
    comparison: Comparison,
    places: Places,
    file: TextIO | None = None,
    top: int = 10,
    width: int | None = None,
) -> None:
    """Print the metrics of the whole runs, then the changed statements: new, gone, known.

    Args:
        top: maximum number of statements.
        width: in columns; by default the terminal's width, or 80.
    """
    console = console_for(file, width)
    runs = f"{comparison.before_runs} and {comparison.after_runs} runs"
    parts: list[RenderableType] = [
        Text.assemble(("queryprof compare", "bold"), f"  {runs}, before and after"),
        *(
            Text(line)
            for line in (comparison_summary(comparison), run_totals_sentence(comparison))
            if line
        ),
        *(Text(f"! {caution}", style="yellow") for caution in verdict_cautions(comparison)),
    ]
    # The totals come first, because after a fix one new statement may replace many executions.
    parts.append(_metrics_table("\nThe whole run", comparison.whole))
    shown = [c for c in comparison.statements if c.verdict in (Verdict.WORSE, Verdict.BETTER)]
    parts += [_change_card(change, places, console.width) for change in shown[:top]]
    if len(shown) > top:
        parts.append(heading_line(f"{len(shown) - top} more changed: --format json", "dim"))
    if all(len(course) >= CHARTED_INTERVALS for course in comparison.courses):
        title = "The database's share of the time, from the start of the first run of each side"
        parts.append(heading_line(title))
        parts.append(separate_lines(charts_side_by_side(*comparison.courses, console.width)))
    print_parts(console, parts)


def _change_card(change: StatementChange, places: Places, width: int) -> RenderableType:
    kind = {"new": "new statement", "gone": "gone", "known": str(change.verdict)}[change.kind]
    shown = [
        c
        for c in change.changes
        if c.verdict in (Verdict.WORSE, Verdict.BETTER) or c.metric == "database_ns"
    ]
    inside: list[RenderableType] = [SqlText(change.statement, width - 7)]
    inside += [
        Text.assemble(
            (places.site(site.site), "cyan"),
            f"  {average(site.before)} -> {average(site.after)} executions",
            overflow="fold",
        )
        for site in change.sites
    ]
    inside.append(_metrics_table("", tuple(shown)))
    plans = plans_before_and_after(change.plans.before, change.plans.after)
    inside += [Text(line, style="yellow" if "now" in line[:8] else "") for line in plans]
    if meaning := worse_plan_reason(change.plans.before, change.plans.after):
        inside.append(Text(meaning))
    head = heading_line(kind, STYLES[change.verdict])
    return Group(head, Padding(Group(*inside), (0, 0, 0, 5)))


def _metrics_table(title: str, changes: tuple[MetricChange, ...]) -> RenderableType:
    table = borderless_table(title)
    table.add_column("metric", no_wrap=True)
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=name != "change")
    table.add_column("verdict", no_wrap=True)
    for change in changes:
        table.add_row(
            metric_name(change),
            metric_value(change, change.before),
            metric_value(change, change.after),
            change_in_percent(change),
            Text(str(change.verdict), style=STYLES[change.verdict]),
        )
    return table
