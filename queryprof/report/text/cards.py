"""What a card of the vital few has beside its figures: why it takes its time, as far as
is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from queryprof.analysis.bottlenecks import Bottleneck
from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.findings.finding import CATEGORIES, Finding
from queryprof.analysis.report import Report
from queryprof.analysis.spans import RepeatSummary
from queryprof.analysis.units import average, count, counted, duration


def reasons(bottleneck: Bottleneck, report: Report, findings: Sequence[Finding]) -> Iterator[str]:
    """The findings on a statement at its call site; what blocked an event loop, and queries in a
    loop, where no finding has it.
    """
    reported = set()
    for number, finding in enumerate(findings, 1):
        if _same(bottleneck, finding.statement, finding.site):
            reported.add(finding.category)
            yield f"{CATEGORIES[finding.category]} (finding {number})"
    if not reported:
        for repeat in report.repeats:
            if _same(bottleneck, repeat.statement, repeat.site):
                yield repeat_in_words(repeat)
    if "blocked_loop" not in reported:
        yield from _stalls(bottleneck, report)


def _stalls(bottleneck: Bottleneck, report: Report) -> Iterator[str]:
    for loop in report.loops:
        mine = [
            stall.stall
            for stall in loop.stalls
            if stall.causes and _same(bottleneck, stall.causes[0].statement, stall.causes[0].site)
        ]
        if mine:
            times = counted(sum(stall.count for stall in mine), "time")
            longest_ns = max(stall.max_ns for stall in mine)
            yield f"it blocked the {loop.loop.kind} loop {times}, {duration(longest_ns)} at most"


def _same(bottleneck: Bottleneck, statement: str, site: CallSite) -> bool:
    return (statement, site.frame) == (bottleneck.statement, bottleneck.site.frame)


def repeat_in_words(found: RepeatSummary) -> str:
    """How often a query ran in one span."""
    return (
        f"{average(round(found.each, 1))} times in each of {counted(found.spans, 'span')}"
        f" {found.span} (at most {count(found.most)}): a query in a loop?"
    )


def together(bottlenecks: Iterable[Bottleneck]) -> list[list[Bottleneck]]:
    """The bottlenecks by call site, in the order of each site's first."""
    found: dict[object, list[Bottleneck]] = {}
    for one in bottlenecks:
        found.setdefault(one.site.frame or one.rank, []).append(one)
    return list(found.values())
