"""Merged, capped and doubtful figures stay right in combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from analysis.by_hand import QUERY, aggregate, process, profile_of
from findings.test_causes import INDEX, Knows
from findings.test_causes import findings as planned
from findings.test_lock_thresholds import T1, T2, waited
from findings.test_thresholds import MS, READ, SITE, findings, has

from queryprof.analysis.lock_holders import LockHolders
from queryprof.analysis.plans import Steps
from queryprof.analysis.totals import add_aggregates
from queryprof.comparing.comparison_result import Verdict
from queryprof.comparing.verdicts import Metric, MetricComparer
from queryprof.core._core import histogram_bucket
from queryprof.model import Frame, LockEvent, ParameterSample, Plan, Thread
from queryprof.model.files import FileWork
from queryprof.planner.facts import IndexHelp

pytestmark = pytest.mark.once


def test_the_longest_wait_of_several_callers() -> None:
    """Short waits for holders at one place are reported together, with the longest of them."""
    short = waited(12, 1.0, held_ms=6)
    other = (QUERY, Frame("other", "/app/main.py", 20))
    events = []
    for number, (site, ms) in enumerate(((SITE, 4), (other, 9))):
        start = 1000 * number * MS
        events += [
            LockEvent("write", "a.db", "BEGIN", site, "", T1, "COMMIT", SITE, start, ms * MS),
            LockEvent("wait", "a.db", READ, SITE, "", T2, READ, SITE, start, ms * MS),
        ]
    (found,) = findings(replace(short, lock_events=tuple(events)))
    assert "for 13.0 ms (longest 9.00 ms)" in found.evidence[0]


def test_readers_at_one_time_are_not_longer_than_the_wait_for_them() -> None:
    """Three readers hold at one place at the same time: the wait counts once."""
    threads = [Thread(1, f"R{number}") for number in range(3)]
    commit = LockEvent("wait", "a.db", "COMMIT", SITE, "", T2, "COMMIT", SITE, 0, 20 * MS)
    wait = replace(commit, writes=True)
    reads = [
        LockEvent("read", "a.db", READ, SITE, "", one, READ, SITE, 0, 20 * MS) for one in threads
    ]
    (found,) = [
        one
        for one in findings(replace(waited(0, 1.0), lock_events=(*reads, wait)))
        if "blocked" in one.evidence[0]
    ]
    assert "for 20.0 ms (longest 20.0 ms)" in found.evidence[0]


@pytest.mark.parametrize(("waited_ms", "is_outlier"), [(0, True), (200, False)])
def test_a_long_wait_for_a_lock_is_no_outlier(waited_ms: int, is_outlier: bool) -> None:
    one = aggregate("CREATE TABLE t(a)", SITE, ns=220 * MS, count=20)
    one = one._replace(
        histogram={histogram_bucket(MS): 19, histogram_bucket(201 * MS): 1},
        execution_max_ns=201 * MS,
        max_ns=201 * MS,
    )
    work = FileWork(
        one.statement,
        SITE,
        "",
        one.thread,
        "execute",
        calls=20,
        lock_waits=1,
        lock_ns=0,
        max_lock_ns=waited_ms * MS,
        syncs=0,
        sync_ns=0,
        read_bytes=0,
        read_ns=0,
        written_bytes=0,
        write_ns=0,
    )
    (found,) = [
        each
        for each in findings(replace(profile_of(one), file_work=(work,)))
        if each.category == "heavy_query"
    ]
    assert any("the slowest execution took" in text for text in found.evidence) == is_outlier


@pytest.mark.parametrize(("processes", "is_reported"), [(1, True), (10, True), (11, False)])
def test_each_process_may_run_a_query_without_parameters_once(
    processes: int, is_reported: bool
) -> None:
    """Half of the 20 executions are repeats within a process."""
    statement = "SELECT a FROM t"
    runs = [
        aggregate(statement, SITE, ns=50 * MS, count=1)._replace(thread=Thread(1 + n, "MainThread"))
        for n in range(processes)
    ]
    runs[0] = aggregate(statement, SITE, ns=50 * MS, count=21 - processes)
    profile = replace(
        profile_of(*runs),
        processes=tuple(process(1 + n) for n in range(processes)),
        parameters=(ParameterSample(statement, SITE, 1, 1),),
    )
    assert has("duplicate_query", profile) == is_reported


class KnowsEach(Knows):
    """A planner with an answer for each statement."""

    def __init__(self, answers: dict[str, IndexHelp]) -> None:
        self._answers = answers

    def index_help(self, statement: str, plans: Sequence[Steps]) -> IndexHelp:
        return self._answers[statement]

    def tables(self, statement: str) -> frozenset[str]:
        return frozenset()


@pytest.mark.parametrize(("by_range", "severity"), [(False, "high"), (True, "low")])
def test_a_doubt_about_one_statement_is_one_about_their_sum(by_range: bool, severity: str) -> None:
    """One index serves two statements of some 5% of a second each. If one of them is in doubt,
    together they count no more than each alone.
    """
    scans = [
        aggregate(f"SELECT {column} FROM t WHERE b = ?", SITE, ns=54 * MS, count=50)._replace(
            rows=50, vm_steps=50 * 20_000, full_scan_steps=50 * 1000
        )
        for column in ("a", "c")
    ]
    answers = {scans[0].statement: INDEX, scans[1].statement: replace(INDEX, by_range=by_range)}
    plans = tuple(Plan(one.statement, "app.db", "SCAN t") for one in scans)
    (found,) = planned(replace(profile_of(*scans), plans=plans), KnowsEach(answers), is_loop=False)
    assert (found.category, found.severity) == ("full_scan", severity)


@pytest.mark.parametrize("is_first", [True, False])
def test_counters_without_calls_are_no_shortest_call(is_first: bool) -> None:
    """Counters without calls have no shortest call, so 0 must not become the minimum."""
    calls = aggregate(READ, ns=50)
    counters = aggregate(READ)._replace(count=0, min_ns=0, max_ns=0, total_ns=0, self_ns=0)
    assert add_aggregates((counters, calls) if is_first else (calls, counters)).min_call_ns == 50
    assert add_aggregates([counters]).min_call_ns == 0


@pytest.mark.parametrize(("wait_ms", "held_ms"), [(50, 50), (150, 150), (151, 50)])
def test_a_waiter_sleeps_a_tenth_of_a_second_at_most(wait_ms: int, held_ms: int) -> None:
    """The waiter may sleep up to 100 ms after the last hold of 50 ms. A later delay has another
    cause.
    """
    hold = LockEvent("write", "a.db", "BEGIN", SITE, "", T1, "COMMIT", SITE, 0, 50 * MS)
    wait = LockEvent("wait", "a.db", READ, SITE, "", T2, READ, SITE, 0, wait_ms * MS)
    assert LockHolders([hold, wait]).blockers_of(wait) == [(hold, held_ms * MS)]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(8, 8, Verdict.WORSE), (4, 8, Verdict.UNCLEAR), (8, 4, Verdict.UNCLEAR)],
)
def test_few_runs_of_one_side_may_not_overlap(before: int, after: int, verdict: Verdict) -> None:
    """This holds however many runs the other side has."""
    metric = Metric("database_ns", "time", lambda totals: totals.self_ns)
    slow: list[float | None] = [1.5 + number / 100 for number in range(after)]
    fast: list[float | None] = [1.0 + number / 100 for number in range(before - 1)]
    found = MetricComparer(0.05, True)(metric, [*fast, 1.505], slow)
    assert found.verdict is verdict
