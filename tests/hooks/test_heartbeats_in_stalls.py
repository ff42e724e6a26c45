"""queryprof's own heartbeat is no callback that a stall delays."""

from __future__ import annotations

import asyncio
import time

import queryprof

STALLS = 6


def block() -> None:
    time.sleep(0.12)  # longer than a heartbeat's interval, so that one is due


async def sleep_without_await() -> None:
    for _ in range(STALLS):
        block()
        await asyncio.sleep(0)


def test_a_loop_with_one_task_delays_nothing() -> None:
    with queryprof.profile() as recording:
        asyncio.run(sleep_without_await())
    stalls = [stall for loop in recording.profile.loops for stall in loop.stalls]
    assert sum(stall.count for stall in stalls) == STALLS
    assert [(stall.delayed, stall.delay_ns) for stall in stalls] == [(0, 0)] * len(stalls)
