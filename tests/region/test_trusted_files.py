"""queryprof reads a region only if no other user could write it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import queryprof
from queryprof.region.region import has_header
from queryprof.region.region_files import checkpoints_in, checkpoints_of_trace, regions_of_trace

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("mode", "is_read"), [(0o600, True), (0o640, False), (0o602, False), (0o700, False)]
)
def test_a_region_that_another_user_could_write_is_not_read(mode: int, is_read: bool) -> None:
    queryprof.install("x.qprof")
    sqlite3.connect(":memory:").execute("SELECT 1").connection.close()
    (region,) = regions_of_trace("x.qprof")
    planted = region.rpartition("-")[0] + "-planted"
    shutil.copy(region, planted)
    try:
        os.chmod(planted, mode)
        assert (planted in regions_of_trace("x.qprof")) is is_read
    finally:
        os.unlink(planted)
    queryprof.uninstall()
    copy = Path("x.qprof.7.abc.live")
    copy.write_bytes(b"")
    copy.chmod(mode)
    assert bool(checkpoints_of_trace("x.qprof")) is is_read
    assert bool(checkpoints_in("")) is is_read


def test_a_pipe_in_the_place_of_a_copy_does_not_block() -> None:
    """It may replace the copy after its checks."""
    os.mkfifo("x.qprof.1.0123456789ab.live", 0o600)
    assert has_header("x.qprof.1.0123456789ab.live")
