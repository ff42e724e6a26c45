"""The report as JSON: all figures, with units in the names (see report_types.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.loops import FunctionSummary, LoopSummary, StallSummary, StatementShare
from queryprof.analysis.report import Report
from queryprof.analysis.spans import SpanSummary
from queryprof.analysis.totals import Totals
from queryprof.analysis.views import DIMENSIONS
from queryprof.model import Exemplar, Frame, Plan, Thread, ThreadUsage
from queryprof.report.json import report_types as to
from queryprof.report.json.writing import (
    WRITERS,
    build_from_attributes,
    cached_writer,
    document_pieces,
    json_object_template,
    to_document_value,
    to_json,
)

MAX_CACHED_TEXTS = 65_536
"""Maximum number of cached JSON texts of frames, and of call sites. Most frames and call sites
occur many times in a report.
"""


def json_report(report: Report, dimension: str | None = None) -> Iterator[str]:
    """Return the report as a JSON document, in pieces of text.

    Args:
        dimension: the only view to include; None for all.
    """
    profile, top, overview, ranking = report.profile, report.top, report.overview, report.ranking
    dimensions = DIMENSIONS if dimension is None else (dimension,)
    document = build_from_attributes(
        to.Document,
        overview,
        format_version=2,
        profiler_ns_estimate=overview.profiler_ns,
        processes=profile.processes,
        vital_few=ranking.vital,
        bottlenecks=ranking.bottlenecks,
        views={name: report.view(name).rows for name in dimensions},
        loops=tuple(_loop_document(found, top) for found in report.loops),
        spans=report.spans[:top],
        slowest_spans=report.slowest_spans[:top],
        handoffs=report.handoffs[:top],
        threads=tuple(_usage_document(*item) for item in list(report.threads.items())[:top]),
        notes=report.notes,
        plans=profile.plans,
        error_counts=profile.errors,
        exemplars=profile.exemplars[:top],
        lock_holds=report.lock_holds[:top],
        lock_events=report.lock_events[:top],
        timeline=to.Timeline(profile.timeline_width_ns, profile.timeline),
    )
    return document_pieces(document)


@lru_cache(MAX_CACHED_TEXTS)
def _frame_json(frame: Frame) -> str:
    known = {"line": frame.line or None, "first_line": frame.first_line or None}
    return to_json(build_from_attributes(to.Frame, frame, **known))


TOTALS_SOURCES = {
    "rows": "known_rows",
    "counted_executions": "counted",
    "vm_steps": "vm_steps_sum",
    "full_scan_steps": "full_scan_steps_sum",
    "sorts": "sorts_sum",
    "automatic_indexes": "automatic_indexes_sum",
    "page_fetches_per_execution_estimate": "page_fetches",
}
"""The attribute of the analysis's Totals for each document field that has another name."""


def _totals_writer() -> Callable[[Totals], str]:
    """Return a fast writer for totals, which are half of a large document.

    All fields of totals are numbers, so a single template is enough.
    """
    names = [field.name for field in fields(to.Totals)]
    take = attrgetter(*[TOTALS_SOURCES.get(name, name) for name in names])
    template = json_object_template(names)
    return lambda totals: (
        template % tuple(["null" if number is None else number for number in take(totals)])
    )


WRITERS[Frame] = _frame_json
WRITERS[CallSite] = cached_writer(WRITERS[CallSite], MAX_CACHED_TEXTS)
WRITERS[Totals] = _totals_writer()


@to_document_value.register
def _(thread: Thread) -> Any:
    return thread.name


@to_document_value.register
def _(plan: Plan) -> Any:
    return build_from_attributes(to.Plan, plan, tree=tuple(plan.tree.splitlines()))


@to_document_value.register
def _(exemplar: Exemplar) -> Any:
    return build_from_attributes(to.Exemplar, exemplar, span=exemplar.span or None)


@to_document_value.register
def _(share: StatementShare) -> Any:
    return build_from_attributes(to.Cause, share, site=share.site.frame)


@to_document_value.register
def _(found: FunctionSummary) -> Any:
    return build_from_attributes(
        to.Function,
        found.step,
        share=found.share,
        durations=found.summary,
        total_ns=found.step.durations.total_ns,
        causes=found.causes,
    )


@to_document_value.register
def _(finding: StallSummary) -> Any:
    stall = finding.stall
    return build_from_attributes(
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


@to_document_value.register
def _(finding: SpanSummary) -> Any:
    numbers = finding.queries
    return build_from_attributes(
        to.Span,
        finding.span,
        wall=finding.wall,
        cpu_mean_ns=finding.cpu_ns,
        queries=to.Queries(numbers.mean_ns, numbers.p50_ns, numbers.p95_ns, numbers.max_ns),
        repeats=finding.repeats,
    )


def _loop_document(finding: LoopSummary, top: int | None) -> to.Loop:
    loop = finding.loop
    return build_from_attributes(
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


def _usage_document(name: str, usage: ThreadUsage) -> to.Usage:
    return build_from_attributes(
        to.Usage, usage, name=name, timeline=to.UsageTimeline(usage.width_ns, usage.timeline)
    )
