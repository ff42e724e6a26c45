"""Statements whose time SQLite's work does not explain: the driver calls Python code."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.findings.find import find_all
from queryprof.model import Plan, Profile, Thread, ThreadUsage

pytestmark = pytest.mark.once

MS = 1_000_000
READ = "SELECT doc FROM document"


def fix_of(profile: Profile, statement: str) -> str:
    findings = find_all(Report(profile), lambda *_: None, {})
    return next(one.fix for one in findings if one.statement == statement)


@pytest.mark.parametrize(
    ("steps", "cpu_ms", "is_inside"),
    [
        (83_333, 200, True),  # at most 100 ms of 300
        (83_334, 200, False),
        (83_333, 149, False),  # the thread mostly waited
    ],
)
def test_time_that_steps_do_not_explain(steps: int, cpu_ms: int, is_inside: bool) -> None:
    one = aggregate(READ, (MAIN,), ns=300 * MS)._replace(rows=500, vm_steps=steps)
    none = (None,) * 4
    usage = ThreadUsage(Thread(1, "MainThread"), cpu_ms * MS, 0, 1, 1, *none, 1000 * MS, ())
    profile = replace(profile_of(one), thread_usage=(usage,))
    assert ("Python code that the driver calls" in fix_of(profile, READ)) == is_inside


@pytest.mark.parametrize(("median_ns", "is_inside"), [(20 * MS, False), (40 * MS, True)])
def test_executions_that_wait_for_the_processor(median_ns: int, is_inside: bool) -> None:
    """SQLite's work explains at most 10 ms of an execution. A few of them wait for 140 ms."""
    times = {histogram_bucket(median_ns): 20, histogram_bucket(140 * MS): 10}
    one = aggregate(READ, (MAIN,), ns=1800 * MS, count=30)._replace(
        rows=500, vm_steps=250_000, histogram=times, execution_max_ns=140 * MS
    )
    none = (None,) * 4
    usage = ThreadUsage(Thread(1, "MainThread"), 1500 * MS, 0, 1, 1, *none, 3000 * MS, ())
    profile = replace(profile_of(one), thread_usage=(usage,))
    assert ("Python code that the driver calls" in fix_of(profile, READ)) == is_inside


@pytest.mark.parametrize("step", ["SCAN doc VIRTUAL TABLE INDEX 0:M1", "SCAN doc"])
def test_full_text_search_is_no_python_code(step: str) -> None:
    one = aggregate(READ, (MAIN,), ns=300 * MS)._replace(rows=500, vm_steps=83_333)
    none = (None,) * 4
    usage = ThreadUsage(Thread(1, "MainThread"), 200 * MS, 0, 1, 1, *none, 1000 * MS, ())
    plans = (Plan(READ, "app.db", step),)
    profile = replace(profile_of(one), thread_usage=(usage,), plans=plans)
    assert ("Python code that the driver calls" in fix_of(profile, READ)) == (step == "SCAN doc")
