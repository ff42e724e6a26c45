"""What queryprof writes itself is not the program's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queryprof.collect.convert import RegionConversion
from queryprof.region.region import opened_region
from queryprof.trace.store import TraceStore

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs the kernel's counts"),
]

RECORDS = """
import sqlite3, time
import queryprof
from queryprof.core import _core

queryprof.install("place/x.qprof", window="1h")
connection = sqlite3.connect(":memory:")
for number in range(4):
    connection.execute("SELECT ?", (number,)).fetchall()
    _core.end_window(time.time_ns())
with open("own", "wb") as file:
    file.write(bytes(3000))
"""


def test_written_windows_are_left_out() -> None:
    os.mkdir("place")
    subprocess.run([sys.executable, "-c", RECORDS], check=True)
    parts = sorted(Path("place").glob("*.live"))
    size = sum(part.stat().st_blocks * 512 for part in parts)
    store = TraceStore(":memory:")
    conversion = RegionConversion(store)
    for part in parts:
        with opened_region(str(part)) as region:
            conversion.add(region)
    (written,) = store.connection.execute("SELECT written_bytes FROM process").fetchone()
    store.abandon()
    assert 3000 <= written < size / 2
