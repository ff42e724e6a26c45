"""Why a request took so long, beside its executions."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from queryprof.analysis.delays import Delay, Delays
from queryprof.model import (
    Distribution,
    Frame,
    LockEvent,
    Loop,
    Profile,
    SlowSpan,
    StallEvent,
    Thread,
)
from queryprof.trace.reader import read_profile

pytestmark = pytest.mark.once

MS = 1_000_000
MAIN, OTHER = Thread(1, "MainThread"), Thread(1, "other")
REPORT, HOLD = Frame("report", "/app/main.py", 51), Frame("hold", "/app/jobs.py", 8)
NONE = Distribution(0, 0, 0, {})


def stall(start_ms: int, ms: int) -> StallEvent:
    return StallEvent(REPORT, (REPORT,), (), start_ms * MS, ms * MS)


def lock(kind: str, thread: Thread, start_ms: int, ms: int, frame: Frame) -> LockEvent:
    return LockEvent(kind, "/a.db", kind, (frame,), "", thread, "", (), start_ms * MS, ms * MS)


def reasons(
    stalls: tuple[StallEvent, ...] = (), locks: tuple[LockEvent, ...] = (), thread: Thread = MAIN
) -> tuple[Delay, ...]:
    """Of a span in the main thread from 100 to 200 ms."""
    loop = Loop("asyncio", thread, True, 1, 0, 0, 0, 0, 0, NONE, NONE, (), (), stalls)
    span = SlowSpan("GET /", MAIN, 100 * MS, 100 * MS, 0, 0, False, 200, ())
    return Delays(Profile((), (), loops=(loop,), lock_events=locks)).of(span)


def test_the_part_of_a_stall_that_is_in_the_span() -> None:
    assert reasons((stall(50, 80),)) == (Delay("stall", 30 * MS, REPORT, 1),)
    assert reasons((stall(110, 20), stall(150, 20), stall(10, 50))) == (
        Delay("stall", 40 * MS, REPORT, 2),
    )


def test_what_explains_little_or_is_of_another_thread_is_left_out() -> None:
    assert reasons((stall(100, 10),)) == (Delay("stall", 10 * MS, REPORT, 1),)
    assert reasons((stall(100, 9),)) == ()
    assert reasons((stall(100, 90),), thread=OTHER) == ()
    assert reasons(locks=(lock("wait", OTHER, 100, 50, REPORT),)) == ()


def test_who_held_the_lock() -> None:
    held = lock("write", OTHER, 90, 60, HOLD)
    assert reasons(locks=(held, lock("wait", MAIN, 110, 40, REPORT))) == (
        Delay("lock", 40 * MS, HOLD, 1),
    )
    assert reasons(locks=(lock("wait", MAIN, 110, 40, REPORT),)) == (
        Delay("lock", 40 * MS, None, 1),
    )


PROGRAM = """
    import asyncio, time, queryprof
    def report():
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            sum(range(1000))
    async def blocker():
        await asyncio.sleep(0.02)
        report()
    async def quick():
        with queryprof.span("GET /quick"):
            await asyncio.sleep(0.05)
    async def main():
        await asyncio.gather(blocker(), quick())
    asyncio.run(main())
"""


def test_a_request_that_another_one_delays(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(textwrap.dedent(PROGRAM))
    command = [Path(sys.executable).with_name("queryprof"), "run", "--no-report", "-o", "t.qprof"]
    subprocess.run([*command, "app.py"], cwd=tmp_path, check=True)
    profile = read_profile(str(tmp_path / "t.qprof"))
    (span,) = profile.slow_spans
    (delay,) = Delays(profile).of(span)
    assert delay.kind == "stall"
    assert delay.frame is not None
    assert delay.frame.function == "report"
    said = subprocess.run(
        [command[0], "report", "--slowest-requests", "t.qprof"], cwd=tmp_path, check=True,
        capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert " the event loop stood at report() app.py:" in said
