"""The report as JSON: everything, with units in the names (report-schema.json documents it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queryprof.analysis.bottlenecks import Bottleneck, rank_bottlenecks
from queryprof.analysis.overview import overview_of
from queryprof.analysis.totals import Totals
from queryprof.analysis.views import DIMENSIONS, View, view_by
from queryprof.model import Exemplar, Process, Profile
from queryprof.report.inert import json_text
from queryprof.report.loop_json import frame_json, loops_json
from queryprof.report.work_json import site_json, work_json

FORMAT_VERSION = 1


def json_report(
    profile: Profile, dimension: str | None = None, sort: str = "total", top: int | None = None
) -> str:
    """The report as a JSON document.

    Args:
        dimension: the one view to include; None: all.
        top: how many bottlenecks, and rows of each view, at the most; None: all.
    """
    overview = overview_of(profile)
    ranking = rank_bottlenecks(profile, sort, top)
    dimensions = DIMENSIONS if dimension is None else (dimension,)
    document: Mapping[str, Any] = {
        "format_version": FORMAT_VERSION,
        "command": list(overview.command),
        "run_ns": overview.run_ns,
        "database_ns": overview.database_ns,
        "database_share": overview.database_share,
        "calls": overview.calls,
        "executions": overview.executions,
        "statements": overview.statements,
        "errors": overview.errors,
        "rows": overview.rows,
        "profiler_ns_estimate": overview.profiler_ns,
        "cautions": list(overview.cautions),
        "processes": [_process(process) for process in profile.processes],
        "vital_few": ranking.vital,
        "bottlenecks": [_bottleneck(b) for b in ranking.bottlenecks],
        "views": {name: _view(view_by(profile, name, sort, top)) for name in dimensions},
        "loops": loops_json(profile, top),
        **work_json(profile, top),
        "notes": dict(profile.notes),
        "plans": [
            {"statement": p.statement, "database": p.database, "tree": p.tree.splitlines()}
            for p in profile.plans
        ],
        "error_counts": [
            {
                "statement": error.statement,
                "operation": error.operation,
                "exception": error.exception,
                "count": error.count,
                "path": [frame_json(frame) for frame in error.path],
            }
            for error in profile.errors
        ],
        "exemplars": [_exemplar(exemplar) for exemplar in profile.exemplars[:top]],
        "timeline": {
            "width_ns": profile.timeline_width_ns,
            "intervals": [
                {
                    "start_unix_ns": interval.start_unix_ns,
                    "calls": interval.calls,
                    "rows": interval.rows,
                    "self_ns": interval.self_ns,
                }
                for interval in profile.timeline
            ],
        },
    }
    return json_text(document, indent=1)


def _totals(totals: Totals) -> Mapping[str, Any]:
    return {
        "calls": totals.calls,
        "executions": totals.executions,
        "errors": totals.errors,
        "rows": totals.rows,
        "total_ns": totals.total_ns,
        "self_ns": totals.self_ns,
        "mean_ns": totals.mean_ns,
        "p50_ns": totals.p50_ns,
        "p95_ns": totals.p95_ns,
        "p99_ns": totals.p99_ns,
        "max_ns": totals.max_ns,
        "min_call_ns": totals.min_call_ns,
        "max_call_ns": totals.max_call_ns,
        "counted_executions": totals.counted,
        "vm_steps": totals.vm_steps_sum if totals.counted else None,
        "full_scan_steps": totals.full_scan_steps_sum if totals.counted else None,
        "sorts": totals.sorts_sum if totals.counted else None,
        "automatic_indexes": totals.automatic_indexes_sum if totals.counted else None,
        "page_fetches_per_execution_estimate": totals.page_fetches,
    }


def _bottleneck(bottleneck: Bottleneck) -> Mapping[str, Any]:
    return {
        "rank": bottleneck.rank,
        "statement": bottleneck.statement,
        "site": site_json(bottleneck.site),
        "share": bottleneck.share,
        "cumulative_share": bottleneck.cumulative_share,
        "totals": _totals(bottleneck.totals),
        "plans": [list(plan) for plan in bottleneck.plans],
    }


def _view(view: View) -> list[Mapping[str, Any]]:
    return [
        {
            "name": row.name,
            "share": row.share,
            "totals": _totals(row.totals),
            "callers": [
                {"site": site_json(caller.site), "totals": _totals(caller.totals)}
                for caller in row.callers
            ],
        }
        for row in view.rows
    ]


def _process(process: Process) -> Mapping[str, Any]:
    return {
        "pid": process.pid,
        "parent_pid": process.parent_pid,
        "host": process.host,
        "argv": list(process.argv),
        "directory": process.directory,
        "python_version": process.python_version,
        "sqlite_version": process.sqlite_version,
        "queryprof_version": process.queryprof_version,
        "start_unix_ns": process.start_unix_ns,
        "end_unix_ns": process.end_unix_ns,
        "clean_end": process.clean_end,
        "clock": process.clock,
        "rows_estimated": process.rows_estimated,
        "counters_off": process.counters_off,
        "call_cost_ns": process.call_cost_ns,
        "read_bytes": process.read_bytes,
        "written_bytes": process.written_bytes,
        "clock_tick_ns": process.clock_tick_ns,
        "unmeasured": None if process.unmeasured is None else list(process.unmeasured),
    }


def _exemplar(exemplar: Exemplar) -> Mapping[str, Any]:
    return {
        "statement": exemplar.statement,
        "operation": exemplar.operation,
        "span": exemplar.span or None,
        "thread": exemplar.thread.name,
        "started_unix_ns": exemplar.started_unix_ns,
        "duration_ns": exemplar.duration_ns,
        "rows": exemplar.rows,
        "stack": [frame_json(frame) for frame in exemplar.stack],
        "sql": exemplar.sql,
        "parameters": exemplar.parameters,
    }
