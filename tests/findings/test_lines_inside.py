"""Lines that call other lines: each time belongs to one statement, and one fix may cover both."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate
from findings.line_profiles import MS, READ, SITE, WRITE, findings, loop, profile

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.libraries import BOTH
from queryprof.findings.merging import merge_same_cause
from queryprof.findings.program import Program
from queryprof.findings.source_lines import UnknownSourceLines
from queryprof.model import FileWork, Frame, LineTime, Profile, Thread

pytestmark = pytest.mark.once


class Chains(UnknownSourceLines):
    """Source in which each query needs the row of the one before, or none does."""

    def __init__(self, follows: bool) -> None:
        self._follows = follows

    def needs_previous_row(self, frame: Frame) -> bool:
        return self._follows


INNER_READ = "SELECT b FROM u WHERE c = ?"
INNER = Frame("price", "/app/db.py", 9)


def nested(pass_ns: int, inner_ns: int, passes: int = 60, count: int = 200) -> Profile:
    """Return a line that executes READ 100 times and calls `price`, which executes another
    query.
    """
    path = (INNER, QUERY, MAIN)
    driver = aggregate(INNER_READ, path, ns=count * 10_000, count=count)
    inside = LineTime(INNER_READ, path, passes, passes, 0, passes * inner_ns)
    return profile(loop(READ, 60, 60, others=120, pass_ns=pass_ns), (driver, inside))


def gains(one: Profile) -> dict[str, float]:
    return {each.statement: each.gain_ns / MS for each in findings(one)}


def test_a_line_has_no_time_of_a_line_that_it_calls() -> None:
    """Of 5 ms, two inner queries take 1 ms each."""
    found = gains(nested(5 * MS, MS))
    assert found[READ] == pytest.approx(300 * 99 / 100, abs=1)
    assert found[INNER_READ] == pytest.approx(200 * 199 / 200, abs=1)


def test_a_line_takes_no_more_than_the_line_that_calls_it() -> None:
    """One timed pass was preempted for 100 ms. All 200 passes together take 5 ms in each of 100
    passes of the outer line.
    """
    found = gains(nested(5 * MS, 100 * MS, passes=1))
    assert found[INNER_READ] <= 500


def test_a_statement_that_is_also_executed_elsewhere_has_no_such_limit() -> None:
    one = nested(5 * MS, 100 * MS)
    elsewhere = aggregate(INNER_READ, (INNER, MAIN), ns=200 * 10_000, count=200)
    found = gains(replace(one, aggregates=(*one.aggregates, elsewhere)))
    assert found[INNER_READ] > 500


def test_the_fix_of_nested_lazy_loads_is_one_finding() -> None:
    outer, inner = sorted(findings(nested(5 * MS, MS)), key=lambda one: one.statement != READ)
    fixed = replace(inner, fix=f"Load A.b and B.c {BOTH}: ...", parent=READ)
    (found,) = merge_same_cause([outer, fixed])
    assert (found.statement, found.gain_ns) == (INNER_READ, outer.gain_ns + inner.gain_ns)
    assert "the fix also covers the outer query in line 3" in found.evidence[-1]
    assert len(merge_same_cause([outer, replace(fixed, parent="SELECT 1")])) == 2
    assert len(merge_same_cause([outer, inner])) == 2


def test_a_query_that_needs_the_row_before_is_low() -> None:
    driver, time = loop(READ, 60, 60, pass_ns=8 * MS)
    report = Report(profile((driver, time)))

    def finding(follows: bool) -> tuple[str, str]:
        (found,) = find_all(
            report, lambda frame, _: replace(frame, line=1), {}, lines=Chains(follows)
        )
        return found.severity, found.fix

    assert finding(follows=False)[0] == "high"
    severity, fix = finding(follows=True)
    assert severity == "low"
    assert "WITH RECURSIVE" in fix


@pytest.mark.parametrize(("others", "is_limited"), [(60, True), (59, False)])
def test_a_comprehension_is_timed_up_to_its_second_item(others: int, is_limited: bool) -> None:
    """Its passes contain one of the inner queries. The time of a pass says nothing of the rest."""
    one = nested(5 * MS, 100 * MS)
    times = (one.line_times[0], *one.line_times[1:])
    first = replace(times[0], others=others)  # of 120 inner queries in 60 passes
    found = gains(replace(one, line_times=(first, *times[1:])))
    assert (found[INNER_READ] <= 500) == is_limited


@pytest.mark.parametrize(("wait_ms", "line_ms"), [(0, 6), (240, 2), (120, 4)])
def test_another_statement_of_the_line_may_have_waited(wait_ms: int, line_ms: int) -> None:
    """Each of 60 passes takes 6 ms, with the waits of an INSERT on the same line."""
    one = profile(loop(READ, 60, 60, pass_ns=6 * MS, count=60), loop(WRITE, 0, 0, count=60))
    waits = 60, wait_ms * MS, 9 * MS if wait_ms else 0
    work = FileWork(WRITE, SITE, "", Thread(1, "MainThread"), "execute", 60, *waits, *([0] * 6))
    program = Program(Report(replace(one, file_work=(work,))), lambda *_: None, {})
    group = next(each for each in program.all_groups if each.statement == READ)
    assert group.mean_line_ns == pytest.approx(line_ms * MS)
