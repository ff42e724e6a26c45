"""A hold of a lock that lasts longer than a window."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queryprof.collect.convert import RegionConversion
from queryprof.region.region import opened_region
from queryprof.trace.store import TraceStore

pytestmark = pytest.mark.once

HOLDS = """
import sqlite3, time
import queryprof
from queryprof.core import _core

queryprof.install("place/x.qprof", window="1h")
connection = sqlite3.connect("t.db", isolation_level=None)
connection.execute("CREATE TABLE t (a)")
start = time.perf_counter_ns()
connection.execute("BEGIN IMMEDIATE")
for _ in range(3):
    time.sleep(1.1)
    _core.end_window(time.time_ns())
connection.execute("COMMIT")
print(time.perf_counter_ns() - start)
"""


def test_each_window_has_its_part_of_a_hold() -> None:
    """The windows together have its time once."""
    os.mkdir("place")
    result = subprocess.run([sys.executable, "-c", HOLDS], check=True, capture_output=True)
    store = TraceStore(":memory:")
    conversion = RegionConversion(store)
    for part in sorted(Path("place").glob("*.live")):
        with opened_region(str(part)) as region:
            conversion.add(region)
    count, total_ns = store.connection.execute(
        "SELECT sum(count), sum(total_ns) FROM lock_hold JOIN statement ON statement.id = statement_id"
        " WHERE text = 'BEGIN IMMEDIATE' AND kind = 'write'"
    ).fetchone()
    store.abandon()
    assert count == 1
    assert 3.3e9 <= total_ns <= int(result.stdout)
