"""The timeline: intervals without gaps, whose rates add up to the trace's totals."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from analysis.by_hand import process, profile_of
from hypothesis import given
from hypothesis import strategies as st

from queryprof.analysis.report import Report
from queryprof.analysis.timeline import timeline_of
from queryprof.model import Interval, Profile
from queryprof.report.terminal.timeline import print_timeline

pytestmark = pytest.mark.once

WIDTH_NS = 1 << 20


def profile_with(*intervals: Interval, run_ns: int = 20 * WIDTH_NS) -> Profile:
    run = process(start_unix_ns=0, end_unix_ns=run_ns)
    return replace(
        profile_of(), processes=(run,), timeline_width_ns=WIDTH_NS, timeline=tuple(intervals)
    )


@given(
    st.lists(st.tuples(st.integers(0, 19), st.integers(0, 9)), min_size=1),
    st.integers(1, 24),
    st.integers(19 * WIDTH_NS + 1, 20 * WIDTH_NS),
)
def test_nothing_is_lost(places: list[tuple[int, int]], most: int, run_ns: int) -> None:
    """This holds for any maximum number of intervals, and any end of the run."""
    intervals = [Interval(at * WIDTH_NS, calls, 2 * calls, 100 * calls) for at, calls in places]
    found = timeline_of(profile_with(*intervals, run_ns=run_ns), most)
    assert 1 <= len(found.moments) <= most
    starts = [moment.start_ns for moment in found.moments]
    assert starts == [n * found.width_ns for n in range(len(starts))]
    lengths = [end - start for start, end in zip(starts, [*starts[1:], run_ns], strict=True)]
    for figure, each in (("calls_per_s", 1), ("rows_per_s", 2)):
        total = sum(
            getattr(moment, figure) * length / 1e9
            for moment, length in zip(found.moments, lengths, strict=True)
        )
        assert total == pytest.approx(each * sum(calls for _, calls in places))


def test_busy_is_a_share_of_the_part_that_the_run_was_in() -> None:
    """The last interval is half as long, and the database was busy throughout."""
    half = WIDTH_NS // 2
    found = timeline_of(profile_with(Interval(0, 1, 0, half), run_ns=half), 24)
    assert [moment.busy for moment in found.moments] == [1.0]


def test_a_trace_without_a_timeline() -> None:
    text = io.StringIO()
    print_timeline(Report(profile_of()), text, 80)
    assert text.getvalue() == "The trace has no timeline.\n"


@pytest.mark.parametrize("width", [80, 160])
def test_it_fits_the_terminal(width: int) -> None:
    intervals = [Interval(n * WIDTH_NS, n**3, n, n * WIDTH_NS // 10) for n in range(20)]
    text = io.StringIO()
    print_timeline(Report(profile_with(*intervals)), text, width)
    lines = text.getvalue().splitlines()
    assert (
        len(lines) == 24
    )  # an empty line, a title, the column names and a note about shares over 1
    assert max(map(len, lines)) <= width
    assert "190.0%" in lines[-2]
    assert lines[-2].count("█") > 2 * lines[-12].count("█") - 2 > 0
