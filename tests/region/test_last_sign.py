"""A recording does not end before its last call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from queryprof.collect.reader import read_profile
from queryprof.collect.recent_calls import CallChoice
from queryprof.collect.recovery import save_left_recordings
from queryprof.region.region_files import SHARED_MEMORY

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
]

FETCHES = """
import os, signal, sqlite3, time
import queryprof
queryprof.install("x.qprof")
rows = sqlite3.connect(":memory:").execute("VALUES (1), (2), (3)")
time.sleep(0.05)
rows.fetchone()
time.sleep(0.005)
print(time.time_ns(), flush=True)
rows.fetchone()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_fetch_is_a_sign_too() -> None:
    """Its execution has begun earlier, and what is done now and then was done at the fetch before."""
    result = subprocess.run([sys.executable, "-c", FETCHES], capture_output=True, check=False)
    save_left_recordings("x.qprof")
    (process,) = read_profile("x.qprof").processes
    assert not process.clean_end
    assert process.end_unix_ns >= int(result.stdout) - 1_000_000


INTERRUPTED = """
import sqlite3, time
import queryprof
from queryprof.region import facts

read_clock = facts.unix_ns

def unix_ns():
    now = read_clock()
    time.sleep(0.05)  # the thread waits for a processor
    return now

facts.unix_ns = unix_ns
queryprof.install("x.qprof")
sqlite3.connect(":memory:").execute("SELECT 1")
"""


def test_a_thread_that_is_interrupted_when_the_recording_begins() -> None:
    subprocess.run([sys.executable, "-c", INTERRUPTED], check=True)
    profile = read_profile("x.qprof", CallChoice())
    (process,), last = profile.processes, profile.recent_calls[-1]
    assert last.duration_ns is not None
    assert process.end_unix_ns >= last.start_unix_ns + last.duration_ns
