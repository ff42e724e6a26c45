"""The event loops' part of the JSON report (report-schema.json documents it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queryprof.analysis.loops import LoopFinding, Share, StallFinding, find_loops
from queryprof.analysis.spread import Spread
from queryprof.model import CallPath, Frame, Profile


def loops_json(profile: Profile, top: int | None = None) -> list[Mapping[str, Any]]:
    """The loops of a profile, with `top` stalls and functions of each at the most (None: all)."""
    return [_loop(finding, top) for finding in find_loops(profile)]


def _loop(finding: LoopFinding, top: int | None) -> Mapping[str, Any]:
    loop = finding.loop
    return {
        "kind": loop.kind,
        "thread": loop.thread.name,
        "runs": loop.runs,
        "run_ns": loop.run_ns,
        "busy_ns": loop.busy_ns if loop.has_steps else None,
        "utilization": finding.utilization,
        "steps": loop.steps if loop.has_steps else None,
        "waiting_mean": finding.mean_waiting,
        "waiting_max": loop.waiting_max if finding.mean_waiting is not None else None,
        "beat_lag": spread_json(finding.beat_lag),
        "timer_lag": spread_json(finding.timer_lag),
        "stalls": [_stall(stall) for stall in finding.stalls[:top]],
        "functions": [
            {
                "function": frame_json(found.step.function),
                "share": found.share,
                "durations": spread_json(found.spread),
                "total_ns": found.step.durations.total_ns,
                "database_ns": found.step.database_ns,
                "gc_ns": found.step.gc_ns,
                "causes": [_share(cause) for cause in found.causes],
            }
            for found in finding.functions[:top]
        ],
    }


def _stall(finding: StallFinding) -> Mapping[str, Any]:
    stall = finding.stall
    return {
        "function": frame_json(stall.function) if stall.function.function else None,
        "seen_at": _path(stall.path),
        "category": finding.category,
        "share": finding.share,
        "count": stall.count,
        "total_ns": stall.total_ns,
        "mean_ns": finding.mean_ns,
        "max_ns": stall.max_ns,
        "database_ns": stall.database_ns,
        "gc_ns": stall.gc_ns,
        "cpu_share": stall.cpu_ns / stall.cpu_of_ns if stall.cpu_of_ns else None,
        "gil_ns": stall.gil_ns,
        "delayed": finding.delayed,
        "delay_ns": finding.delay_ns,
        "samples": stall.samples,
        "stack": _path(stall.stack),
        "causes": [_share(cause) for cause in finding.causes],
    }


def _share(share: Share) -> Mapping[str, Any]:
    return {
        "statement": share.statement,
        "site": frame_json(share.site.frame) if share.site.frame else None,
        "calls": share.calls,
        "ns": share.ns,
        "share": share.share,
    }


def spread_json(spread: Spread) -> Mapping[str, Any]:
    """A distribution of durations."""
    return {
        "count": spread.count,
        "mean_ns": spread.mean_ns,
        "p50_ns": spread.p50_ns,
        "p95_ns": spread.p95_ns,
        "p99_ns": spread.p99_ns,
        "max_ns": spread.max_ns,
    }


def _path(path: CallPath) -> list[Mapping[str, Any]]:
    return [frame_json(frame) for frame in path]


def frame_json(frame: Frame) -> Mapping[str, Any]:
    """A place in the program."""
    return {
        "function": frame.function,
        "file": frame.file,
        "line": frame.line or None,
        "kind": frame.kind,
    }
