"""Times by a clock that the test sets: exact, and without waiting.

Only builds with fault injection have this clock.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import queryprof
from queryprof.core import _core

MS = 1_000_000

pytestmark = pytest.mark.skipif(
    not hasattr(_core, "set_clock_ns"), reason="needs the core built with fault injection"
)


@pytest.fixture
def wait() -> Iterator[Callable[[int], None]]:
    """Advance the clock by this many nanoseconds."""
    now_ns = 1_000_000_000_000
    _core.set_clock_ns(now_ns)

    def move(ns: int) -> None:
        nonlocal now_ns
        now_ns += ns
        _core.set_clock_ns(now_ns)

    yield move
    _core.set_clock_ns(0)


def test_an_execution_lasts_from_its_execute_to_its_last_fetch(wait: Callable[[int], None]) -> None:
    """The program's own work between the calls does not count."""
    with queryprof.profile() as recording:
        connection = sqlite3.connect(":memory:")
        connection.create_function("wait", 1, lambda ms: wait(ms * MS))
        cursor = connection.execute("SELECT wait(7) UNION ALL SELECT wait(5)")
        wait(1000 * MS)
        cursor.fetchall()
        connection.close()
    executed, fetched = (
        a
        for a in sorted(recording.profile.aggregates, key=lambda a: a.operation)
        if a.statement.startswith("SELECT")
    )
    assert (executed.total_ns, fetched.total_ns) == (7 * MS, 5 * MS)
    assert executed.execution_max_ns == 12 * MS


def test_a_stall_is_as_long_as_its_step(wait: Callable[[int], None]) -> None:
    """A stall begins at the threshold. Ready callbacks wait for all of it."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(wait, 49 * MS)
        loop.call_soon(wait, 80 * MS)
        loop.call_soon(int)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with queryprof.profile() as recording:
        asyncio.run(main())
    (loop,) = recording.profile.loops
    assert [(s.count, s.total_ns, s.max_ns) for s in loop.stalls] == [(1, 80 * MS, 80 * MS)]
    (stall,) = loop.stalls
    assert stall.delay_ns == stall.delayed * 80 * MS > 0


def test_a_queue_is_as_long_as_its_wait(wait: Callable[[int], None]) -> None:
    """The work waits in the queue of a pool, then in its thread."""

    def ask() -> None:
        connection = sqlite3.connect(":memory:")
        connection.execute("SELECT 1").fetchall()
        connection.close()
        wait(3 * MS)

    with queryprof.profile() as recording, ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            pool.submit(ask).result()
    (handoff,) = recording.profile.handoffs
    assert (handoff.count, handoff.queue.total_ns, handoff.run.total_ns) == (3, 0, 9 * MS)


def test_a_long_recording_keeps_the_calls_of_each_of_its_minutes(
    wait: Callable[[int], None],
) -> None:
    """The timeline joins its intervals in pairs: they hold one minute at first."""
    db = sqlite3.connect(":memory:")
    db.create_function("wait", 1, lambda ms: wait(ms * MS))
    began_ns = time.time_ns()
    with queryprof.profile() as recording:
        for minute in range(8):
            _core.set_wall_clock(began_ns + minute * 60_000 * MS)
            wait(60_000 * MS)
            db.execute(f"SELECT wait(1) {'UNION ALL SELECT 1 ' * minute}").fetchall()
    db.close()
    used = [(one.calls, one.rows, one.self_ns) for one in recording.profile.timeline if one.calls]
    assert used[:8] == [(2, minute + 1, MS) for minute in range(8)]
