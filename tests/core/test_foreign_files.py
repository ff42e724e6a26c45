"""The program's file numbers do not depend on the watchdog's files."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, sys, time
import queryprof

def spin(seconds):
    found, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        first = os.open("/dev/null", os.O_RDONLY)
        os.close(first)
        second = os.open("/dev/null", os.O_RDONLY)
        os.close(second)
        found += first != second
    return found

async def main():
    found = 0
    for _ in range(8):
        await asyncio.sleep(0)
        found += spin(0.35)  # a stall, which is looked at some times
    return found

with queryprof.profile() as recording:
    found = asyncio.run(main())
print(found, sum(one.stall.samples for one in __import__("queryprof.analysis.report", fromlist=["x"]).Report(recording.profile).loops[0].stalls) > 5)
"""


@pytest.mark.once
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it opens none")
def test_a_program_s_next_file_has_the_number_that_it_would_have() -> None:
    """The file is opened and closed while the watchdog reads. If the watchdog used its number, it
    would be closed under the program.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("0 True\n", "")
