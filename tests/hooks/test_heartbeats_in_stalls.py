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
    own = [one for one in stalls if one.function.function == sleep_without_await.__name__]
    assert sum(one.count for one in own) >= STALLS  # the last step may also be long
    assert {(one.delayed, one.delay_ns) for one in own} == {(0, 0)}
