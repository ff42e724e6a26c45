"""Text on the cards of the vital few: figures, changes and causes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from queryprof.analysis.bottlenecks import Bottleneck
from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.loops import DATABASE
from queryprof.analysis.overview import Overview
from queryprof.analysis.report import Report
from queryprof.analysis.spans import RepeatSummary
from queryprof.analysis.totals import Totals, add_aggregates
from queryprof.analysis.units import average, count, counted, duration, percent
from queryprof.findings.finding import CATEGORIES, Finding

NOTABLE_PART = 0.05
"""A part of the time split is shown if it takes at least this share of the statement's time."""

FEW_STEPS = 20
"""A statement with fewer VM steps does no notable work (COMMIT, for example)."""


def findings_at(
    bottleneck: Bottleneck, report: Report, findings: Sequence[Finding]
) -> Iterator[str]:
    """Yield the titles of the findings on a statement at its call site.

    Stalls and repeated queries follow if no finding covers them.
    """
    reported = set()
    for number, finding in enumerate(findings, 1):
        if _is_at_bottleneck(bottleneck, finding.statement, finding.site):
            reported.add(finding.category)
            named = "no known cause" if finding.is_unexplained else f"finding {number}"
            yield f"{CATEGORIES[finding.category].title} ({named})"
    if not reported:
        for repeat in report.repeats:
            if _is_at_bottleneck(bottleneck, repeat.statement, repeat.site):
                yield repeat_in_words(repeat)
    if "blocked_loop" not in reported:
        yield from _stalls_line(bottleneck, report)


def _stalls_line(bottleneck: Bottleneck, report: Report) -> Iterator[str]:
    for loop in report.loops:
        mine = [
            stall.stall
            for stall in loop.stalls
            if stall.category == DATABASE
            and stall.causes
            and _is_at_bottleneck(bottleneck, stall.causes[0].statement, stall.causes[0].site)
        ]
        if mine:
            times = counted(sum(stall.count for stall in mine), "time")
            longest_ns = max(stall.max_ns for stall in mine)
            yield f"it blocked the {loop.loop.kind} loop {times}, longest {duration(longest_ns)}"


def _is_at_bottleneck(bottleneck: Bottleneck, statement: str, site: CallSite) -> bool:
    return (statement, site.frame) == (bottleneck.statement, bottleneck.site.frame)


def one_line_summary(overview: Overview) -> str:
    """Return executions, statements and time in one line."""
    if not overview.calls:
        return "no database calls"
    share = f"{percent(overview.database_share)} of {duration(overview.run_ns)}"
    if overview.database_share > 1:
        share = f"sum over concurrent threads, in {duration(overview.run_ns)}"
    return (
        f"{counted(overview.executions, 'execution')} of"
        f" {counted(overview.statements, 'statement')}, {duration(overview.database_ns)} in the"
        f" database ({share})"
    )


def one_line_change(before: Report, after: Report) -> str:
    """Compare two recordings of a block in one line. Unknown figures are omitted."""
    parts = []
    for name, figure, shown in (
        ("ran", lambda one: one.overview.run_ns, duration),
        ("time in the database", lambda one: one.overview.database_ns, duration),
        ("executions", lambda one: one.overview.executions, count),
        ("rows", lambda one: one.overview.rows, count),
        ("VM steps", _total_vm_steps, count),
    ):
        was, now = figure(before), figure(after)
        if was is not None and now is not None:
            parts.append(f"{name} {shown(was)} -> {shown(now)}")
    return ", ".join(parts)


def _total_vm_steps(report: Report) -> int | None:
    return add_aggregates(report.profile.aggregates).vm_steps_sum


def repeat_in_words(found: RepeatSummary) -> str:
    """Return how often a query ran per span."""
    each = average(round(found.each, 1))
    if found.spans == 1:
        return f"{each} times in a span {found.span}: a query in a loop?"
    return (
        f"{each} times per span on average, in {count(found.spans)} spans {found.span} (up to"
        f" {count(found.most)} in one): a query in a loop?"
    )


def group_by_site(bottlenecks: Iterable[Bottleneck]) -> list[list[Bottleneck]]:
    """Group the bottlenecks by call site, in the order of each site's first bottleneck."""
    found: dict[object, list[Bottleneck]] = {}
    for one in bottlenecks:
        found.setdefault(one.site.frame or one.rank, []).append(one)
    return list(found.values())


def figure_lines(bottleneck: Bottleneck, notes: Sequence[str]) -> list[str]:
    """Return lines with the time split, the percentiles and the work, if they are notable.

    Args:
        notes: the other notes on the card.
    """
    lines = (
        _time_split(bottleneck),
        _percentiles_line(bottleneck.totals),
        _work_line(bottleneck, notes),
    )
    return [line for line in lines if line]


def _time_split(bottleneck: Bottleneck) -> str:
    """Return the split of the time; "" if unknown, or if only computing takes a notable share."""
    if bottleneck.files is None:
        return ""
    split = bottleneck.files.time_shares(bottleneck.totals.self_ns)
    notable = [(name, share) for name, share in split if share >= NOTABLE_PART]
    if [name for name, _ in notable] == ["computing"]:
        return ""
    return "  ".join(f"{name} {percent(share)}" for name, share in notable)


def _percentiles_line(totals: Totals) -> str:
    """Return the percentiles of a statement with several executions."""
    if totals.executions < 2 or totals.p50_ns is None:
        return ""
    own = f"  its own {duration(totals.self_mean_ns)}" if totals.has_calls_inside else ""
    return (
        f"p50 {duration(totals.p50_ns)}  p95 {duration(totals.p95_ns)}"
        f"  p99 {duration(totals.p99_ns)}  max {duration(totals.max_ns)}{own}"
    )


def _work_line(bottleneck: Bottleneck, notes: Sequence[str]) -> str:
    """Return the work per execution, if it is notable. Unknown and zero figures are omitted."""
    totals = bottleneck.totals
    figures = {"rows": totals.rows_each}
    if bottleneck.mark or notes:
        figures |= {
            "VM steps": totals.vm_steps,
            "full-scan steps": totals.full_scan_steps,
            "page fetches": totals.page_fetches,
        }
    if not totals.rows_each and (totals.vm_steps or 0) < FEW_STEPS:
        return ""
    shown = "  ".join(
        f"{name} {'~' * (name == 'page fetches')}{average(value)}"
        for name, value in figures.items()
        if value
    )
    return f"each: {shown}" if shown else ""
