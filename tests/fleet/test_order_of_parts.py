"""The parts of a process are added in the order in which it wrote them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from queryprof.fleet.batches import Taken
from queryprof.fleet.shipping import _sum_of
from queryprof.region.part_names import part_number

pytestmark = pytest.mark.once

RECORDS = """
import sqlite3, time
import queryprof
from queryprof.core import _core

queryprof.install("place/x.qprof", window="1h")
connection = sqlite3.connect(":memory:")
for number in range(11):
    connection.execute("SELECT ?", (number,)).fetchall()
    _core.end_window(time.time_ns())
"""


def test_the_tenth_part_comes_after_the_second() -> None:
    """The last part tells how the process has ended."""
    os.mkdir("place")
    subprocess.run([sys.executable, "-c", RECORDS], check=True)
    paths = sorted(map(str, Path("place").glob("*.live")), key=part_number)
    assert len(paths) > 10
    files = [Taken(os.path.basename(path), path, True) for path in paths]
    for some, has_ended in ((files[:-1], False), (files, True)):
        profile = _sum_of(random.Random(1).sample(some, len(some)))
        assert [one.clean_end for one in profile.processes] == [has_ended]
