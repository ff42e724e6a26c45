"""Figures and words of the report in a terminal."""

from __future__ import annotations

import dataclasses
import io

import pytest
from analysis.by_hand import aggregate, profile_of
from report.test_cards import finding
from report.test_reports import LOOP

from queryprof.analysis.report import Report
from queryprof.analysis.units import average, duration
from queryprof.findings.finding import UNKNOWN_FAULT
from queryprof.model import (
    Frame,
)
from queryprof.report.places import Places
from queryprof.report.terminal.report import print_report

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0 ns", 0),
        ("999 ns", 999),
        ("1.00 µs", 1000),
        ("12.3 µs", 12_345),
        ("100 µs", 99_960),
        ("1.00 ms", 999_999),
        ("1.00 s", 999_999_999),
        ("1,234 s", 1.234e12),
        ("?", None),
    ],
)
def test_durations_have_three_digits(text: str, ns: float | None) -> None:
    """The unit keeps them short. Unknown durations are a question mark."""
    assert duration(ns) == text


def test_an_unknown_line_is_shown_as_unknown() -> None:
    """Compiled code has no known line; built-in code has no file."""
    places = Places()
    assert (
        places.frame_text(Frame("price", "/srv/shop/fast.so", 0)) == "price() /srv/shop/fast.so:?"
    )
    assert places.frame_text(Frame("(unknown)", "", 0)) == "(unknown)"


def test_averages() -> None:
    """Whole numbers have no decimals. Unknown averages are a question mark."""
    assert [average(x) for x in (None, 0.0, 1.5, 12.0, 1234.5)] == ["?", "0", "1.5", "12", "1,234"]


def test_beyond_the_vital_few() -> None:
    """--top sets the number of statements. The vital few come first."""
    most = aggregate("SELECT 1", ns=97)
    others = [aggregate(f"SELECT {number} AS a", ns=1) for number in (2, 3, 4)]
    text = io.StringIO()
    report = Report(profile_of(most, *others), top=3)
    print_report(report, file=text, width=100, beyond=True)
    few, _, after = text.getvalue().partition("Other lines")
    assert ("SELECT 1" in few, "SELECT 2 AS a" in few) == (True, False)
    assert ("SELECT 2 AS a" in after, "SELECT 4 AS a" in after) == (True, False)
    assert "See also: queryprof report --top 4, " in after
    text = io.StringIO()
    print_report(report, file=text, width=100)
    assert "Other lines" not in text.getvalue()


@pytest.mark.parametrize(("ms", "is_reported"), [(1000, False), (1001, True)])
def test_more_time_than_the_run_is_attributed_to_threads(ms: int, is_reported: bool) -> None:
    """The run takes one second."""
    profile = profile_of(aggregate("SELECT a FROM t", (LOOP,), ns=ms * 1_000_000))
    text = io.StringIO()
    print_report(Report(profile), file=text, width=200)
    assert ("threads ran concurrently" in text.getvalue()) == is_reported


@pytest.mark.parametrize("waits", [True, False])
def test_waits_for_a_pool_are_shown_next_to_the_database_time(waits: bool) -> None:
    query = aggregate("SELECT a FROM t", (LOOP,), ns=2_000_000)
    wait = aggregate("(pool wait)", (LOOP,), ns=700_000_000, operation="pool wait")
    text = io.StringIO()
    print_report(Report(profile_of(query, *[wait] * waits)), file=text, width=200)
    assert ("including 700 ms waiting for a pool connection" in text.getvalue()) == waits


def test_a_query_without_a_known_problem_is_nothing_to_do() -> None:
    heavy = dataclasses.replace(finding(0.3, 300), category="heavy_query", fix=UNKNOWN_FAULT)
    report = Report(profile_of(aggregate("SELECT 1")))
    for found, is_shown in (((heavy,), False), ((heavy, finding(0.2, 200)), True)):
        text = io.StringIO()
        print_report(report, text, 100, found)
        assert ("What to do" in text.getvalue()) == is_shown
        assert UNKNOWN_FAULT not in text.getvalue()


def test_fixes_have_the_numbers_of_analyze() -> None:
    """A finding without a fix is not shown, but counts."""
    heavy = dataclasses.replace(finding(0.3, 300), category="heavy_query", fix=UNKNOWN_FAULT)
    text = io.StringIO()
    report = Report(profile_of(aggregate("SELECT 1")))
    print_report(report, text, 100, (heavy, finding(0.2, 200)))
    assert "What to do (1 more: queryprof analyze)\n  2  " in text.getvalue()
