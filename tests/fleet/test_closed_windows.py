"""Ship only files whose content no region, or copy of a region, still holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from queryprof.collect.closed_windows import closed_windows
from queryprof.collect.recovery import save_left_recordings

pytestmark = pytest.mark.once

RECORDS = """
import os, sqlite3, sys, time
import queryprof
from queryprof.core import _core

queryprof.install("place/x.qprof", window="1h")
sqlite3.connect(":memory:").execute("SELECT 1")
_core.end_window(time.time_ns())
sqlite3.connect(":memory:").execute("SELECT 2")
print(flush=True)
sys.stdin.readline()
"""


def taken() -> list[tuple[str, bool]]:
    """Return the kinds of files that can be taken, and whether each is still being continued."""
    found, left_out = closed_windows("place")
    assert left_out == []
    names = [(os.path.basename(one.path), one.continues) for one in found]
    return [(name[-6:-5] if "-" in name else "copy", continues) for name, continues in names]


def test_a_part_that_its_region_still_holds_stays() -> None:
    """A process has named a part but not yet emptied its region: alive, then killed."""
    os.mkdir("place")
    with subprocess.Popen(
        [sys.executable, "-c", RECORDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        assert taken() == [("1", True)]
        (part,) = Path("place").glob("*-1.live")
        shutil.copyfile(part, str(part).replace("-1.live", "-2.live"))
        assert taken() == [("1", True)]
        process.kill()
    save_left_recordings("place/x.qprof")
    assert len(list(Path("place").glob("*.live"))) == 3
    assert taken() == [("1", True), ("2", False)]
    assert len(list(Path("place").glob("*.live"))) == 2  # the copy equals the second part


def test_a_killed_process_has_its_region_too() -> None:
    os.mkdir("place")
    with subprocess.Popen(
        [sys.executable, "-c", RECORDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        process.kill()
    assert taken() == [("1", True), ("copy", False)]
