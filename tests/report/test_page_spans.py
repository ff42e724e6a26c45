"""The slowest requests on the page of several processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from queryprof.analysis.report import Report
from queryprof.collect.merge import merge_traces
from queryprof.collect.reader import read_profile
from queryprof.report.html.numbers import TextNumbers
from queryprof.report.html.page_places import PagePlaces
from queryprof.report.html.page_spans import PageSpans

pytestmark = pytest.mark.once

PROGRAM = """
import sqlite3, sys
import queryprof
queryprof.install(sys.argv[1])
with queryprof.span(sys.argv[1]):
    sqlite3.connect(":memory:").execute("SELECT 1").fetchall()
"""


def test_they_begin_after_the_first_process() -> None:
    for name in ("a.qprof", "b.qprof"):
        subprocess.run([sys.executable, "-c", PROGRAM, name], check=True)
    merge_traces("all.qprof", ["a.qprof", "b.qprof"])
    profile = read_profile("all.qprof")
    begun = sorted(one.recorded_unix_ns for one in profile.processes)
    numbers = TextNumbers(PagePlaces(profile), ())
    found = PageSpans(Report(profile), numbers).slowest()
    starts = sorted(one["start"] for one in found)
    assert len(starts) == 2
    assert 0 <= starts[0] < begun[1] - begun[0] <= starts[1]
