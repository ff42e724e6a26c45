"""Findings from the values of a query: patterns that no index serves, and large OFFSETs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.test_causes import SITE, Knows, findings

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.model import ParameterSample, Plan, Profile
from queryprof.planner.facts import IndexHelp

pytestmark = pytest.mark.once

MS = 1_000_000
LIKE = "SELECT a FROM t WHERE b LIKE ?"
PAGED = "SELECT a FROM t ORDER BY b LIMIT ? OFFSET ?"
PREFIX = IndexHelp(("SCAN t",), code="CREATE INDEX t_b ON t (b);", terms=("b",), by_prefix=True)


def scan(samples: int, are_open: int, count: int = 50) -> Profile:
    one = aggregate(LIKE, SITE, ns=300 * MS, count=count)._replace(
        rows=count, vm_steps=20_000 * count, full_scan_steps=5000 * count
    )
    sample = ParameterSample(LIKE, SITE, samples, 0, open_patterns=are_open)
    return replace(profile_of(one), plans=(Plan(LIKE, "app.db", "SCAN t"),), parameters=(sample,))


def test_slow_samples_do_not_count_for_patterns() -> None:
    profile = scan(8, 8)
    (sample,) = profile.parameters
    more = replace(sample, samples=sample.samples + 40, slow=40)
    assert of_scan(replace(profile, parameters=(more,))) == of_scan(profile)


def of_scan(profile: Profile) -> Finding:
    (found,) = findings(profile, Knows(PREFIX), is_loop=False)
    return found


@pytest.mark.parametrize(
    ("samples", "are_open", "code", "severity"),
    [
        (4, 4, "", Severity.LOW),  # all begin with a wildcard
        (4, 0, PREFIX.code, Severity.HIGH),  # none begins with a wildcard
        (4, 1, PREFIX.code, Severity.MEDIUM),
        (3, 3, PREFIX.code, Severity.MEDIUM),  # too few samples
        (3, 0, PREFIX.code, Severity.MEDIUM),
    ],
)
def test_an_index_for_patterns(samples: int, are_open: int, code: str, severity: Severity) -> None:
    found = of_scan(scan(samples, are_open))
    assert (found.category, found.code, found.severity) == ("full_scan", code, severity)
    assert ("FTS5" in found.fix) == (not code)


def test_of_few_executions_all_are_enough() -> None:
    assert "FTS5" in of_scan(scan(3, 3, count=3)).fix


@pytest.mark.parametrize(
    ("offsets", "skipped", "steps", "severity"),
    [
        (4, 404, 5000, Severity.HIGH),
        (4, 40, 5000, None),  # 10 on average, as many as are returned
        (4, 44, 2100, Severity.HIGH),
        (4, 44, 2101, None),  # more than 100 steps per skipped row: others are read
        (3, 404, 5000, Severity.LOW),  # too few samples
    ],
)
def test_an_offset_that_leaves_out_many(
    offsets: int, skipped: int, steps: int, severity: Severity | None
) -> None:
    one = aggregate(PAGED, SITE, ns=300 * MS, count=50)._replace(rows=500, vm_steps=50 * steps)
    sample = ParameterSample(PAGED, SITE, offsets, 0, offsets=offsets, skipped=skipped)
    profile = replace(profile_of(one), parameters=(sample,))
    found = [
        each
        for each in findings(profile, Knows(IndexHelp(("SCAN t USING INDEX t_b",))), is_loop=False)
        if each.category == "offset_pagination"
    ]
    assert [each.severity for each in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("samples", "steps", "is_reported"),
    [(4, 10_099, True), (0, 10_100, True), (0, 10_099, False)],
)
def test_steps_of_a_page_with_a_known_or_unknown_offset(
    samples: int, steps: int, is_reported: bool
) -> None:
    """A page has 100 rows. If the OFFSET is unknown, joins may take the steps."""
    one = aggregate(PAGED, SITE, ns=300 * MS, count=50)._replace(rows=5000, vm_steps=50 * steps)
    sample = ParameterSample(PAGED, SITE, samples, 0, offsets=samples, skipped=500 * samples)
    profile = replace(profile_of(one), parameters=(sample,) if samples else ())
    found = findings(profile, Knows(IndexHelp(("SCAN t USING INDEX t_b",))), is_loop=False)
    assert ("offset_pagination" in {each.category for each in found}) == is_reported


@pytest.mark.parametrize(("skipped", "is_reported"), [(80, False), (84, True)])
def test_an_offset_of_as_many_rows_as_are_returned_is_small(
    skipped: int, is_reported: bool
) -> None:
    """The query skips twenty rows, or one more."""
    one = aggregate(PAGED, SITE, ns=300 * MS, count=50)._replace(rows=50 * 20, vm_steps=50 * 2000)
    sample = ParameterSample(PAGED, SITE, 4, 0, offsets=4, skipped=skipped)
    profile = replace(profile_of(one), parameters=(sample,))
    found = findings(profile, Knows(IndexHelp(("SCAN t USING INDEX t_b",))), is_loop=False)
    assert ("offset_pagination" in {each.category for each in found}) == is_reported


@pytest.mark.parametrize(
    ("skipped", "rows", "is_reported"),
    [(4000, 100, True), (3999, 100, False), (4000, 101, False)],
)
def test_an_offset_in_a_database_without_counted_steps(
    skipped: int, rows: int, is_reported: bool
) -> None:
    """It skips a thousand rows on average, ten times as many as it returns. The fastest page
    remains.
    """
    one = aggregate(PAGED, SITE, ns=300 * MS, count=50)._replace(
        rows=50 * rows, counted=0, vm_steps=0, min_ns=MS
    )
    sample = ParameterSample(PAGED, SITE, 4, 0, offsets=4, skipped=skipped)
    profile = replace(profile_of(one), parameters=(sample,))
    found = find_all(Report(profile), lambda *_: None, {})
    message = [each for each in found if each.category == "offset_pagination"]
    assert [each.gain_ns for each in message] == ([250 * MS] if is_reported else [])


@pytest.mark.parametrize(("count", "each"), [(1, ""), (2, " each")])
def test_a_single_execution_is_not_several(count: int, each: str) -> None:
    statement = "SELECT a FROM t WHERE lower(b) = ?"
    one = aggregate(statement, SITE, ns=600 * MS, count=count)._replace(
        rows=80 * count, vm_steps=20_000 * count, full_scan_steps=5000 * count
    )
    profile = replace(profile_of(one), plans=(Plan(statement, "app.db", "SCAN t"),))
    index = "CREATE INDEX t_e ON t (lower(b));"
    served = IndexHelp(("SCAN t",), code=index, terms=("lower(b)",), is_plain=False, searches=True)
    (found,) = findings(profile, Knows(served))
    assert found.category == "index_defeated"
    assert f"read 5,001 rows{each} to return 80" in found.evidence[0]
