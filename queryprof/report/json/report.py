"""The report as JSON: everything, with units in the names (see report_types.py)."""

from __future__ import annotations

from typing import Any

from queryprof.analysis.loops import FunctionFinding, LoopFinding, Share, StallFinding
from queryprof.analysis.report import Report
from queryprof.analysis.spans import SpanFinding
from queryprof.analysis.totals import Totals
from queryprof.analysis.views import DIMENSIONS
from queryprof.model import Exemplar, Frame, Plan, Thread, ThreadUsage
from queryprof.report.json import report_types as to
from queryprof.report.json.writing import document_text, made, plain


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
        format_version=2,
        profiler_ns_estimate=overview.profiler_ns,
        processes=profile.processes,
        vital_few=ranking.vital,
        bottlenecks=ranking.bottlenecks,
        views={name: report.view(name).rows for name in dimensions},
        loops=tuple(_loop(found, top) for found in report.loops),
        spans=report.spans[:top],
        slowest_spans=report.slowest_spans[:top],
        handoffs=report.handoffs[:top],
        threads=tuple(_usage(*item) for item in list(report.threads.items())[:top]),
        notes=profile.notes,
        plans=profile.plans,
        error_counts=profile.errors,
        exemplars=profile.exemplars[:top],
        lock_holds=report.lock_holds[:top],
        lock_events=profile.lock_events[:top],
        timeline=to.Timeline(profile.timeline_width_ns, profile.timeline),
    )
    return document_text(document, indent=1)


@plain.register
def _(frame: Frame) -> Any:
    known = {"line": frame.line or None, "first_line": frame.first_line or None}
    return plain(made(to.Frame, frame, **known))


@plain.register
def _(thread: Thread) -> Any:
    return thread.name


@plain.register
def _(totals: Totals) -> Any:
    known = bool(totals.counted)
    shown = made(
        to.Totals,
        totals,
        counted_executions=totals.counted,
        vm_steps=totals.vm_steps_sum if known else None,
        full_scan_steps=totals.full_scan_steps_sum if known else None,
        sorts=totals.sorts_sum if known else None,
        automatic_indexes=totals.automatic_indexes_sum if known else None,
        page_fetches_per_execution_estimate=totals.page_fetches,
    )
    return plain(shown)


@plain.register
def _(plan: Plan) -> Any:
    return plain(made(to.Plan, plan, tree=tuple(plan.tree.splitlines())))


@plain.register
def _(exemplar: Exemplar) -> Any:
    return plain(made(to.Exemplar, exemplar, span=exemplar.span or None))


@plain.register
def _(share: Share) -> Any:
    return plain(made(to.Cause, share, site=share.site.frame))


@plain.register
def _(found: FunctionFinding) -> Any:
    shown = made(
        to.Function,
        found.step,
        share=found.share,
        durations=found.summary,
        total_ns=found.step.durations.total_ns,
        causes=found.causes,
    )
    return plain(shown)


@plain.register
def _(finding: StallFinding) -> Any:
    stall = finding.stall
    shown = made(
        to.Stall,
        stall,
        function=stall.function if stall.function.function else None,
        seen_at=stall.path,
        category=finding.category,
        share=finding.share,
        mean_ns=finding.mean_ns,
        cpu_share=stall.cpu_ns / stall.cpu_of_ns if stall.cpu_of_ns else None,
        delayed=finding.delayed,
        delay_ns=finding.delay_ns,
        causes=finding.causes,
    )
    return plain(shown)


@plain.register
def _(finding: SpanFinding) -> Any:
    numbers = finding.queries
    shown = made(
        to.Span,
        finding.span,
        wall=finding.wall,
        cpu_mean_ns=finding.cpu_ns,
        queries=to.Queries(numbers.mean_ns, numbers.p50_ns, numbers.p95_ns, numbers.max_ns),
        repeats=finding.repeats,
    )
    return plain(shown)


def _loop(finding: LoopFinding, top: int | None) -> to.Loop:
    loop = finding.loop
    return made(
        to.Loop,
        loop,
        busy_ns=loop.busy_ns if loop.has_steps else None,
        utilization=finding.utilization,
        steps=loop.steps if loop.has_steps else None,
        waiting_mean=finding.mean_waiting,
        waiting_max=loop.waiting_max if finding.mean_waiting is not None else None,
        beat_lag=finding.beat_lag,
        timer_lag=finding.timer_lag,
        stalls=finding.stalls[:top],
        functions=finding.functions[:top],
    )


def _usage(name: str, usage: ThreadUsage) -> to.Usage:
    return made(
        to.Usage, usage, name=name, timeline=to.UsageTimeline(usage.width_ns, usage.timeline)
    )
