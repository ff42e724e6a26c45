"""A copy of this process's region has the figures of one moment."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from queryprof.collect.region_addition import DISTRIBUTION
from queryprof.core import _core
from queryprof.region.region import Region
from queryprof.region.region_copy import copied_region

pytestmark = pytest.mark.once

COLUMNS = ("count", *(f"durations_{name}" for name in DISTRIBUTION))


def spans_of(region: Region) -> list[tuple[int, int, int]]:
    """Return each span's count, and the sums of its distribution and of its histogram."""
    found = []
    for count, number, _, _, spread, buckets, counts in region.rows("spans", COLUMNS):
        if count:
            histogram = region.histogram(spread, buckets, counts)
            found.append((count, number, sum(each for _, each in histogram)))
    return found


def work(times: int) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        for number in range(times):
            with queryprof.span("work"):
                db.execute("SELECT 1" + " + 1" * number).fetchall()


def test_figures_of_a_copy_do_not_change(tmp_path: Path) -> None:
    """The spread histograms are read after the rows that refer to them."""
    queryprof.install(str(tmp_path / "x.qprof"))
    try:
        work(200)
        copied = copied_region()
        work(300)
        assert spans_of(copied) == [(200, 200, 200)]
        assert spans_of(Region(_core.region())) == [(500, 500, 500)]
        assert {copied.text(number) for (number,) in copied.rows("spans", ("name",))} >= {"work"}
    finally:
        queryprof.uninstall()
