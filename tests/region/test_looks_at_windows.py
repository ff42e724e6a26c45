"""What a reader sees between its looks, while the windows of a recording end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queryprof.region.live import ActivityReader
from queryprof.region.region_files import SHARED_MEMORY

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
]

RECORDS = """
import sqlite3, sys, time
import queryprof
from queryprof.core import _core

queryprof.install("place/x.qprof", window="1h")
connection = sqlite3.connect(":memory:")
print("begun", flush=True)
for line in sys.stdin:
    for times in map(int, line.split(",")):
        for number in range(times):
            connection.execute("SELECT ?", (number,)).fetchone()
        _core.end_window(time.time_ns())
    print("done", flush=True)
"""


def test_each_call_is_seen_once() -> None:
    """Between two looks, one or several windows end."""
    os.mkdir("place")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", RECORDS], stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        watch, seen = ActivityReader(pids={process.pid}), []
        watch.read_activity()
        for line in ("3", "5", "7,11", "2"):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            process.stdout.readline()
            (found,) = watch.read_activity()
            calls = (one.calls for one in found.activities if one.operation == "execute")
            seen.append(sum(calls))
        watch.close()
        process.stdin.close()
    assert seen == [3, 5, 18, 2]
