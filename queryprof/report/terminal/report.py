"""The report for a terminal, with rich. Other outputs get plain text.

The profiled program imports rich only when it prints a report.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding

from queryprof.analysis.bottlenecks import Bottleneck
from queryprof.analysis.overview import Overview, completeness_sentence
from queryprof.analysis.report import Report
from queryprof.analysis.units import average, count, counted, duration, percent, seconds
from queryprof.analysis.views import CallerShare, View, ViewRow
from queryprof.findings.finding import Finding
from queryprof.report.places import Places
from queryprof.report.terminal.console import (
    Text,
    borderless_table,
    console_for,
    heading_line,
    print_parts,
)
from queryprof.report.terminal.errors import error_list
from queryprof.report.terminal.findings import first_fixes
from queryprof.report.terminal.locks import lock_summary
from queryprof.report.terminal.loops import loop_summary
from queryprof.report.terminal.spans import repeat_summary, span_tables
from queryprof.report.terminal.sql import SqlText
from queryprof.report.terminal.threads import handoff_summary, thread_tables
from queryprof.report.text.cards import figure_lines, findings_at, group_by_site, one_line_summary
from queryprof.report.text.deployment import deployment_names, deployments_in_words
from queryprof.report.text.plans import marked_steps

PLAN_LINES = 8
"""Maximum number of lines shown of a query plan."""

WIDE = 110
"""Terminals with this many columns or more show all columns of a table."""


def print_report(
    report: Report,
    file: TextIO | None = None,
    width: int | None = None,
    findings: Sequence[Finding] = (),
    beyond: bool = False,
) -> None:
    """Print the fixes, the statements that take most time, and the options that show more.

    Args:
        width: in columns; by default the terminal's width, or 80.
        findings: largest saving first.
        beyond: also show statements after the vital few, up to the report's `top`.
    """
    console = console_for(file, width)
    places = Places(report.profile)
    parts: list[RenderableType] = [*_overview_lines(report)]
    parts += first_fixes(findings, places)
    parts += loop_summary(report, places)  # findings cover only stalls caused by the database
    if report.overview.calls:
        parts += _vital_few_section(report, findings, places, console.width, beyond)
    parts += error_list(report, places) + lock_summary(report)
    parts += repeat_summary(report, places) + handoff_summary(report, places)
    if report.overview.calls:
        parts += [Text(""), _further_options(report, _row_limit(report, beyond))]
    print_parts(console, [*parts, *_completeness_line(report.overview)])


def print_block_report(
    report: Report, file: TextIO, width: int, findings: Sequence[Finding], lines: Sequence[str]
) -> None:
    """Print the report of a recorded block of code, without colours and without a command line.

    Args:
        lines: printed below the first line.
    """
    console, places = console_for(file, width, plain=True), Places(report.profile)
    parts: list[RenderableType] = [Text(one_line_summary(report.overview)), *map(Text, lines)]
    parts += [Text(f"! {caution}") for caution in report.overview.cautions]
    parts += first_fixes(findings, places, with_code=True) + loop_summary(report, places)
    if report.overview.calls:
        parts += _vital_few_section(report, findings, places, console.width, beyond=False)
    print_parts(console, [*parts, *error_list(report, places)])


def print_view(
    report: Report, dimension: str, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the totals by one dimension: statement, site, operation, thread or span."""
    console = console_for(file, width)
    places = Places(report.profile)
    parts: list[RenderableType] = [*_overview_lines(report)]
    wide = console.width >= WIDE
    if dimension == "span":
        parts += span_tables(report, places, wide)
    elif dimension == "thread":
        parts += thread_tables(report, places, wide)
    if report.overview.calls and dimension == "operation":
        parts.append(_operations_table(report.view(dimension), places))
    elif report.overview.calls:
        parts.append(_view_table(report.view(dimension), places, console.width))
    print_parts(console, [*parts, Text(""), *_completeness_line(report.overview)])


def _completeness_line(overview: Overview) -> list[RenderableType]:
    """Return a line about the completeness of the recording and its overhead; [] for no line."""
    parts = [] if overview.cautions else [completeness_sentence(overview.processes)]
    if overview.calls and overview.profiler_ns:  # 0 if a process was killed early
        share = overview.profiler_ns / overview.process_ns if overview.process_ns else 0
        parts.append(
            f"Recording overhead: about {duration(overview.profiler_ns)} ({percent(share)}), not"
            " counting startup."
        )
    elif overview.calls:
        parts.append("Recording overhead: unknown.")
    return [Text(" ".join(parts), "dim")] if parts else []


SIDE_BY_SIDE = "; threads ran concurrently, so these times include waits for the interpreter's lock"


def _overview_lines(report: Report) -> Iterable[RenderableType]:
    overview, names = (
        report.overview,
        deployments_in_words(map(deployment_names, report.profile.processes)),
    )
    command = shlex.join(overview.command)
    yield Text.assemble(("queryprof", "bold"), "  ", command or "(no process)", overflow="fold")
    if names:
        yield Text(names, "dim")
    processes = f" in {overview.processes} processes" if overview.processes > 1 else ""
    whole = "the summed run times" if processes else "the run time"
    waited_ns = overview.pool_ns
    waited = f", including {duration(waited_ns)} waiting for a pool connection" if waited_ns else ""
    yield Text.assemble(
        "ran ",
        (duration(overview.run_ns), "bold"),
        processes,
        ", ",
        (duration(overview.database_ns), "bold"),
        f" in the database ({percent(overview.database_share)} of {whole}"
        f"{waited}{SIDE_BY_SIDE * (overview.database_share > 1)}): ",
        (counted(overview.executions, "execution"), "bold"),
        " of ",
        (counted(overview.statements, "statement"), "bold"),
        ", ",
        "rows unknown" if overview.rows is None else counted(overview.rows, "row"),
        f", {counted(overview.errors, 'error')}",
    )
    for caution in overview.cautions:
        yield Text(f"! {caution}", style="yellow")


def _row_limit(report: Report, beyond: bool) -> int:
    """Return how many statements and call sites to show."""
    is_cut = report.sort == "time" and not beyond
    most = report.ranking.vital if is_cut else report.ranking.count
    return min(most, len(report.ranking.bottlenecks))


def _vital_few_section(
    report: Report, findings: Sequence[Finding], places: Places, width: int, beyond: bool
) -> Iterator[RenderableType]:
    ranking, sort = report.ranking, report.sort
    shown = ranking.bottlenecks[: _row_limit(report, beyond)]
    vital = ranking.vital if sort == "time" else len(shown)
    title = (
        f"The vital few: {ranking.vital} of {ranking.count} statement and line pairs account for"
        f" {percent(ranking.vital_share)} of the database time"
        if sort == "time"
        else f"Statements and call sites by {sort}"
    )
    yield heading_line(title)
    yield from _bottleneck_cards(shown[:vital], report, findings, places, width)
    left = vital - len(shown)
    if left > 0:
        yield heading_line(
            f"{left} more in the vital few; show them with --top {ranking.vital}", "dim"
        )
    if shown[vital:]:
        yield heading_line("Other lines")
        yield from _bottleneck_cards(shown[vital:], report, findings, places, width)


def _bottleneck_cards(
    shown: Sequence[Bottleneck],
    report: Report,
    findings: Sequence[Finding],
    places: Places,
    width: int,
) -> Iterator[RenderableType]:
    for group in group_by_site(shown):
        for number, found in enumerate(group):
            notes = [f"! {reason}" for reason in findings_at(found, report, findings)]
            if found.statement in report.notes:
                notes.insert(0, report.notes[found.statement])
            yield _bottleneck_card(found, notes, places, width, group[0] if number else None)


def _bottleneck_card(
    bottleneck: Bottleneck, notes: list[str], places: Places, width: int, above: Bottleneck | None
) -> RenderableType:
    """Return the card of a bottleneck. If `above` has the same call site, the card does not repeat
    it but shows "the same line".
    """
    totals = bottleneck.totals
    runs = f"{count(totals.executions)} x {duration(totals.mean_ns)}"
    failed = f", {counted(totals.errors, 'error')}" if totals.errors else ""
    head = Text.assemble(
        (f"{bottleneck.rank:>3}  ", "bold"),
        (f"{percent(bottleneck.share):>5}", "bold red" if bottleneck.share > 0.2 else "bold"),
        "  ",
        (duration(totals.self_ns), "bold"),
        f"  {runs}",
        (failed, "red"),
    )
    site = _site_text(bottleneck, places)
    if above and _site_text(above, places).plain == site.plain:
        site = Text("the same line", "dim")
    below = []
    if head.cell_len + 2 + site.cell_len <= width:
        head.append("  ").append(site)
    else:
        below = [site]
    inside: list[RenderableType] = [
        *below,
        SqlText(bottleneck.statement, width - 7),
        *(Text(text, style="yellow") for text in notes),
        *map(Text, figure_lines(bottleneck, notes)),
        *_plan_lines(bottleneck),
    ]
    return Group(Text(""), head, Padding(Group(*inside), (0, 0, 0, 5)))


def _site_text(bottleneck: Bottleneck, places: Places) -> Text:
    """Return the call site, its most expensive caller, and the database helpers that it called."""
    site = Text(overflow="fold")
    site.append(places.site(bottleneck.site), "bold cyan")
    for caller in bottleneck.callers[:1]:
        site.append(f"  <- {places.frame_text(caller[0])}")
    if bottleneck.site.helpers:
        through = ", ".join(map(places.frame_text, reversed(bottleneck.site.helpers)))
        site.append(f"  (through {through})", style="dim")
    return site


def _further_options(report: Report, shown: int) -> RenderableType:
    """Return a line with the options that show more."""
    is_cut = report.ranking.count > shown
    views = [
        name
        for name, is_there in (
            ("slowest", report.profile.exemplars),
            ("locks", report.lock_holds),
            ("loops", report.loops),
            ("tree", True),
        )
        if is_there
    ]
    options = [f"--top {report.ranking.count}"] * is_cut + ["--by site", f"--show {views[0]}"]
    return Text(f"See also: queryprof report {', '.join(options)}", "dim")


def _plan_lines(bottleneck: Bottleneck) -> list[RenderableType]:
    """Return the lines of the statement's query plan, with a note on each bad step."""
    steps = list(marked_steps(bottleneck.plans, bottleneck.mark))
    lines: list[RenderableType] = [
        Text.assemble(
            (f"plan  {step}" if not number else f"      {step}", "yellow" if sign else "dim"),
            (f"  ! {sign}" if sign else "", "bold yellow"),
        )
        for number, (step, sign) in enumerate(steps[:PLAN_LINES])
    ]
    if len(steps) > PLAN_LINES:
        lines.append(Text(f"      ... ({len(steps) - PLAN_LINES} more lines)", style="dim"))
    return lines


def _caller_line(caller: CallerShare, places: Places) -> RenderableType:
    behind = "".join(f"  <- {places.frame_text(frame)}" for frame in caller.site.callers[:1])
    return Text.assemble(
        f"        {duration(caller.totals.self_ns):>8} "
        f" {counted(caller.totals.calls, 'call'):>11}  ",
        (places.site(caller.site), "cyan"),
        behind,
        no_wrap=True,
        overflow="ellipsis",
    )


def _operations_table(view: View, places: Places) -> RenderableType:
    table = borderless_table("\nBy operation")
    table.add_column("operation", no_wrap=True)
    for name in ("calls", "total (s)", "max", "average", "min"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in view.rows:
        totals = row.totals
        table.add_row(
            row.name,
            count(totals.calls),
            seconds(totals.total_ns),
            duration(totals.max_call_ns),
            duration(totals.mean_call_ns),
            duration(totals.min_call_ns),
        )
    parts: list[RenderableType] = [table, heading_line("Callers by operation")]
    for row in view.rows:
        parts.append(Text(row.name))
        parts += [_caller_line(caller, places) for caller in row.callers]
    return Group(*parts)


def _view_table(view: View, places: Places, width: int) -> RenderableType:
    table = borderless_table(f"\nDatabase time by {view.dimension}")
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    wide = width >= WIDE
    names = ("mean", "p50", "p95", "p99", "max", "rows", "VM steps") if wide else ("mean", "p99")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(view.dimension, overflow="fold", ratio=1)
    for row in view.rows:
        totals = row.totals
        figures = {
            "mean": duration(totals.mean_ns),
            "p50": duration(totals.p50_ns),
            "p95": duration(totals.p95_ns),
            "p99": duration(totals.p99_ns),
            "max": duration(totals.max_ns),
            "rows": average(totals.rows_each),
            "VM steps": average(totals.vm_steps),
        }
        table.add_row(
            percent(row.share),
            duration(totals.self_ns),
            count(totals.executions),
            *(figures[name] for name in names),
            _row_name(row, view, places),
        )
    parts: list[RenderableType] = [table]
    if view.count > len(view.rows):
        parts.append(Text(f"{view.count - len(view.rows)} more: --top {view.count}", style="dim"))
    return Group(*parts)


def _row_name(row: ViewRow, view: View, places: Places) -> Text:
    if view.dimension == "site" and row.callers:
        return Text(places.site(row.callers[0].site))
    return Text(row.name[:500])
