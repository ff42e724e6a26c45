"""The JSON report's part on where work belongs (report-schema.json documents it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.spread import Spread
from queryprof.analysis.work import (
    HandoffFinding,
    RepeatFinding,
    SpanFinding,
    find_handoffs,
    find_spans,
    usage_by_name,
)
from queryprof.model import Profile, ThreadUsage
from queryprof.report.loop_json import frame_json, spread_json


def work_json(profile: Profile, top: int | None = None) -> Mapping[str, Any]:
    """The keys spans, handoffs and threads of the document, `top` of each at the most."""
    return {
        "spans": [_span(found) for found in find_spans(profile)[:top]],
        "handoffs": [_handoff(found) for found in find_handoffs(profile)[:top]],
        "threads": [_usage(name, u) for name, u in list(usage_by_name(profile).items())[:top]],
    }


def _span(found: SpanFinding) -> Mapping[str, Any]:
    span = found.span
    return {
        "name": span.name,
        "count": span.count,
        "errors": span.errors,
        "statuses": {str(status): count for status, count in span.statuses.items()},
        "wall": spread_json(found.wall),
        "cpu_mean_ns": found.cpu_ns,
        "database_ns": span.database_ns,
        "queries": _numbers(found.queries),
        "repeats": [_repeat(repeat) for repeat in found.repeats],
    }


def _numbers(spread: Spread) -> Mapping[str, Any]:
    return {
        "mean": spread.mean_ns, "p50": spread.p50_ns, "p95": spread.p95_ns, "max": spread.max_ns,
    }  # fmt: skip


def _repeat(found: RepeatFinding) -> Mapping[str, Any]:
    return {
        "statement": found.statement,
        "site": site_json(found.site),
        "spans": found.spans,
        "executions": found.executions,
        "most": found.most,
    }


def _handoff(found: HandoffFinding) -> Mapping[str, Any]:
    return {
        "kind": found.kind,
        "site": site_json(found.site),
        "count": found.count,
        "errors": found.errors,
        "cancelled": found.cancelled,
        "queue": spread_json(found.queue),
        "run": spread_json(found.run),
        "handback": spread_json(found.handback),
        "total": spread_json(found.total),
    }


def _usage(name: str, usage: ThreadUsage) -> Mapping[str, Any]:
    return {
        "name": name,
        "user_ns": usage.user_ns,
        "system_ns": usage.system_ns,
        "voluntary_switches": usage.voluntary_switches,
        "involuntary_switches": usage.involuntary_switches,
        "read_bytes": usage.read_bytes,
        "written_bytes": usage.written_bytes,
        "read_calls": usage.read_calls,
        "write_calls": usage.write_calls,
        "timeline": {
            "width_ns": usage.width_ns,
            "intervals": [
                {
                    "start_unix_ns": i.start_unix_ns,
                    "cpu_ns": i.cpu_ns,
                    "read_bytes": i.read_bytes,
                    "written_bytes": i.written_bytes,
                }
                for i in usage.timeline
            ],
        },
    }


def site_json(site: CallSite) -> Mapping[str, Any]:
    """A call site."""
    return {
        "frame": frame_json(site.frame) if site.frame else None,
        "callers": [frame_json(frame) for frame in site.callers],
        "helpers": [frame_json(frame) for frame in site.helpers],
    }
