"""The report as JSON: everything, with units in the names (see report_types.py)."""

from __future__ import annotations

from collections.abc import Iterable

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.loops import LoopFinding, Share, StallFinding
from queryprof.analysis.report import Report
from queryprof.analysis.spans import SpanFinding
from queryprof.analysis.summary import Summary
from queryprof.analysis.totals import Totals
from queryprof.analysis.views import DIMENSIONS, Row
from queryprof.model import Exemplar, Frame, ThreadUsage
from queryprof.report.json import report_types as to
from queryprof.report.json.writing import all_made, document_text, made


def json_report(report: Report, dimension: str | None = None) -> str:
    """The report as a JSON document.

    Args:
        dimension: the one view to include; None: all.
    """
    profile, top, overview, ranking = report.profile, report.top, report.overview, report.ranking
    dimensions = DIMENSIONS if dimension is None else (dimension,)
    document = made(
        to.Document,
        overview,
        format_version=1,
        profiler_ns_estimate=overview.profiler_ns,
        processes=all_made(to.Process, profile.processes),
        vital_few=ranking.vital,
        bottlenecks=tuple(
            made(to.Bottleneck, found, site=_site(found.site), totals=_totals(found.totals))
            for found in ranking.bottlenecks
        ),
        views={
            name: tuple(map(_row, report.view(name).rows)) for name in dimensions
        },
        loops=tuple(_loop(found, top) for found in report.loops),
        spans=tuple(map(_span, report.spans[:top])),
        handoffs=tuple(
            made(
                to.Handoff, found, site=_site(found.site), queue=_summary(found.queue),
                run=_summary(found.run), handback=_summary(found.handback), total=_summary(found.total),
            )
            for found in report.handoffs[:top]
        ),
        threads=tuple(_usage(*item) for item in list(report.threads.items())[:top]),
        notes=dict(profile.notes),
        plans=tuple(
            made(to.Plan, plan, tree=tuple(plan.tree.splitlines())) for plan in profile.plans
        ),
        error_counts=tuple(
            made(to.ErrorCount, error, path=_frames(error.path)) for error in profile.errors
        ),
        exemplars=tuple(map(_exemplar, profile.exemplars[:top])),
        timeline=to.Timeline(
            profile.timeline_width_ns, all_made(to.Interval, profile.timeline)
        ),
    )  # fmt: skip
    return document_text(document, indent=1)


def _frame(frame: Frame) -> to.Frame:
    return made(to.Frame, frame, line=frame.line or None)


def _frames(frames: Iterable[Frame]) -> tuple[to.Frame, ...]:
    return tuple(map(_frame, frames))


def _site(site: CallSite) -> to.Site:
    return to.Site(
        _frame(site.frame) if site.frame else None, _frames(site.callers), _frames(site.helpers)
    )


def _totals(totals: Totals) -> to.Totals:
    known = bool(totals.counted)
    return made(
        to.Totals,
        totals,
        counted_executions=totals.counted,
        vm_steps=totals.vm_steps_sum if known else None,
        full_scan_steps=totals.full_scan_steps_sum if known else None,
        sorts=totals.sorts_sum if known else None,
        automatic_indexes=totals.automatic_indexes_sum if known else None,
        page_fetches_per_execution_estimate=totals.page_fetches,
    )


def _row(row: Row) -> to.Row:
    callers = tuple(to.Caller(_site(one.site), _totals(one.totals)) for one in row.callers)
    return made(to.Row, row, totals=_totals(row.totals), callers=callers)


def _exemplar(exemplar: Exemplar) -> to.Exemplar:
    return made(
        to.Exemplar,
        exemplar,
        span=exemplar.span or None,
        thread=exemplar.thread.name,
        stack=_frames(exemplar.stack),
    )


def _summary(summary: Summary) -> to.Summary:
    return made(to.Summary, summary)


def _loop(finding: LoopFinding, top: int | None) -> to.Loop:
    loop = finding.loop
    return made(
        to.Loop,
        loop,
        thread=loop.thread.name,
        busy_ns=loop.busy_ns if loop.has_steps else None,
        utilization=finding.utilization,
        steps=loop.steps if loop.has_steps else None,
        waiting_mean=finding.mean_waiting,
        waiting_max=loop.waiting_max if finding.mean_waiting is not None else None,
        beat_lag=_summary(finding.beat_lag),
        timer_lag=_summary(finding.timer_lag),
        stalls=tuple(map(_stall, finding.stalls[:top])),
        functions=tuple(
            made(
                to.Function, found.step, function=_frame(found.step.function), share=found.share,
                durations=_summary(found.summary), total_ns=found.step.durations.total_ns,
                causes=tuple(map(_cause, found.causes)),
            )
            for found in finding.functions[:top]
        ),
    )  # fmt: skip


def _stall(finding: StallFinding) -> to.Stall:
    stall = finding.stall
    return made(
        to.Stall,
        stall,
        function=_frame(stall.function) if stall.function.function else None,
        seen_at=_frames(stall.path),
        category=finding.category,
        share=finding.share,
        mean_ns=finding.mean_ns,
        cpu_share=stall.cpu_ns / stall.cpu_of_ns if stall.cpu_of_ns else None,
        delayed=finding.delayed,
        delay_ns=finding.delay_ns,
        stack=_frames(stall.stack),
        causes=tuple(map(_cause, finding.causes)),
    )


def _cause(share: Share) -> to.Cause:
    return made(to.Cause, share, site=_frame(share.site.frame) if share.site.frame else None)


def _span(finding: SpanFinding) -> to.Span:
    numbers = finding.queries
    return made(
        to.Span,
        finding.span,
        statuses={str(status): count for status, count in finding.span.statuses.items()},
        wall=_summary(finding.wall),
        cpu_mean_ns=finding.cpu_ns,
        queries=to.Queries(numbers.mean_ns, numbers.p50_ns, numbers.p95_ns, numbers.max_ns),
        repeats=tuple(made(to.Repeat, found, site=_site(found.site)) for found in finding.repeats),
    )


def _usage(name: str, usage: ThreadUsage) -> to.Usage:
    intervals = all_made(to.UsageInterval, usage.timeline)
    return made(to.Usage, usage, name=name, timeline=to.UsageTimeline(usage.width_ns, intervals))
