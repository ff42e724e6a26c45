"""A timer's wait counts from the begin of a step, and a removed copy is created again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

import queryprof
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once


def test_a_timer_that_is_due_waits_for_each_step_from_its_begin() -> None:
    """Earlier steps do not count again."""

    def blocks() -> None:
        time.sleep(0.15)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for at in (0.01, 0.02, 0.03):
            loop.call_later(at, lambda: None)
        for _ in range(5):
            loop.call_soon(blocks)
        await asyncio.sleep(0)
        await asyncio.sleep(0.1)

    with queryprof.profile("t.qprof"):
        asyncio.run(main())
    (stall,) = [
        stall
        for loop in read_profile("t.qprof").loops
        for stall in loop.stalls
        if stall.function.function.endswith("blocks")
    ]
    assert stall.count == 5
    assert stall.delayed >= 15
    assert stall.delay_ns <= stall.delayed * stall.max_ns


REMOVES = """
import os, signal, sqlite3, time
import queryprof, queryprof.collect.target, queryprof.recorder.session
from queryprof.region.region_files import checkpoints_of_trace
queryprof.recorder.session.CHECKPOINT_INTERVAL_S = 0.5
queryprof.collect.target.memory_directories = lambda: []
queryprof.install('x.qprof')
connection = sqlite3.connect(":memory:")
def copies_after(seconds, wanted):
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(checkpoints_of_trace("x.qprof")) != wanted:
        connection.execute("SELECT 1").fetchall()
        time.sleep(0.01)
    return checkpoints_of_trace("x.qprof")
(copy,) = copies_after(30, 1)
os.unlink(copy)
print(len(copies_after(30, 1)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_copy_that_was_removed_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "removes.py").write_text(REMOVES)
    result = subprocess.run(
        [sys.executable, "removes.py"], capture_output=True, text=True, check=False
    )
    assert (result.stdout, result.stderr) == ("1\n", "")
