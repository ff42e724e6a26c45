"""Event loops in traces are merged exactly."""

from __future__ import annotations

import asyncio
import sqlite3
import time

import pytest
from core.loop_programs import LONGEST_S, until_seen

import queryprof
from queryprof.collect.merge import merge_traces
from queryprof.collect.reader import read_profile
from queryprof.model import Loop, Profile

pytestmark = pytest.mark.once


def record(path: str) -> Profile:
    connection = sqlite3.connect(":memory:")

    async def main() -> None:
        with until_seen(0.0) as seen:
            for _ in range(3):
                connection.execute("SELECT 1").fetchone()
                time.sleep(0.06)  # noqa: ASYNC251
                seen.wait(LONGEST_S)
                await asyncio.sleep(0)

    with queryprof.profile(path) as recording:
        asyncio.run(main())
    connection.close()
    return recording.profile


def figures(loop: Loop) -> list[object]:
    return [
        loop.runs,
        loop.run_ns,
        loop.busy_ns,
        loop.steps,
        loop.beat_lag.count,
        sum(loop.beat_lag.histogram.values()),
        sum(step.durations.count for step in loop.functions),
        sum(sum(step.durations.histogram.values()) for step in loop.functions),
        sum(cause.ns for step in loop.functions for cause in step.causes),
        sum(stall.count for stall in loop.stalls),
        sum(stall.total_ns for stall in loop.stalls),
        sum(cause.calls for stall in loop.stalls for cause in stall.causes),
    ]


def test_a_merge_adds_up() -> None:
    """Loops of different processes stay separate, with all their figures."""
    single = [figures(record(path).loops[0]) for path in ("a.qprof", "b.qprof")]
    merge_traces("all.qprof", ["a.qprof", "b.qprof"])
    merged = read_profile("all.qprof").loops
    assert single == [figures(loop) for loop in merged]
    assert len({loop.thread.process_id for loop in merged}) == 2
    assert merged[0].stalls[0].stack
    assert merged[0].stalls[0].max_ns >= 60_000_000
