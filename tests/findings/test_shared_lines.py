"""Choose the statement of a library's call that a finding reports. Find other work in the line's
time.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of
from findings.line_profiles import MS, READ, SITE, findings, loop, only, profile

from queryprof.analysis.library_frames import OWN
from queryprof.analysis.spans import spans_are_sequential
from queryprof.findings.finding import Severity
from queryprof.model import (
    Distribution,
    Frame,
    LineTime,
    ParameterSample,
    Profile,
    SlowSpan,
    Span,
    StackSample,
    Thread,
)

pytestmark = pytest.mark.once

UPDATE = "UPDATE t SET a = ? WHERE b = ?"
INSERT = "INSERT INTO t VALUES (?)"
POINT = "SAVEPOINT ?"
DJANGO = "/venv/site-packages/django/db/models/"


def called(one: Profile, function: str) -> Profile:
    """Return the same, called through a function of Django that a manager calls."""
    outer = Frame("Manager.manager_method", f"{DJANGO}manager.py", 1, "library")
    inner = Frame(f"QuerySet.{function}", f"{DJANGO}query.py", 1, "library")
    stacks = tuple(
        StackSample(each.statement, (inner, outer, *each.path), 64, each.self_ns)
        for each in one.aggregates
    )
    return replace(one, stack_samples=stacks)


@pytest.mark.parametrize("longer", [READ, UPDATE, POINT])
def test_what_runs_as_often_is_chosen_by_what_it_does(longer: str) -> None:
    """The finding is the same, whichever statement has a slightly longer line."""
    loops = [
        loop(one, 60, 60, others=120, pass_ns=(201 if one == longer else 200) * MS // 100)
        for one in (READ, UPDATE, POINT)
    ]
    found = only(called(profile(*loops), "update_or_create"))
    assert (found.category, found.statement) == ("single_changes", UPDATE)
    assert "update_conflicts=True" in found.fix


@pytest.mark.parametrize(("inserts", "category"), [(83, "n_plus_one"), (84, "single_inserts")])
def test_what_runs_in_each_call_comes_before_what_runs_in_some(inserts: int, category: str) -> None:
    """There are 100 calls."""
    read = loop(READ, 60, 60, others=60)
    point = loop(POINT, 60, 60, others=60, count=200)
    insert = loop(INSERT, 60, 60, others=60, count=inserts)
    found = only(called(profile(read, point, insert), "get_or_create"))
    assert found.category == category
    assert "ignore_conflicts=True" in found.fix


@pytest.mark.parametrize(("calls_itself", "is_timed"), [(True, False), (False, True)])
def test_a_call_has_the_time_of_those_that_it_calls(calls_itself: bool, is_timed: bool) -> None:
    """The passes of a function that walks a tree add up to more than the run."""
    driver, time = loop(READ, 60, 61)
    outer = replace(QUERY, line=QUERY.line + 3) if calls_itself else MAIN
    path = (QUERY, outer, MAIN)
    one = (driver._replace(path=path, self_ns=20 * MS, total_ns=20 * MS), replace(time, path=path))
    found = only(profile(one))
    assert (found.gain_ns > 100 * MS) == is_timed
    assert found.is_least != is_timed


@pytest.mark.parametrize(("writer", "severity"), [(1, Severity.HIGH), (2, Severity.LOW)])
def test_what_another_process_may_have_changed(writer: int, severity: Severity) -> None:
    """A result must not be kept if another process of the recording writes."""
    read = aggregate("SELECT max(a) FROM t", SITE, ns=500 * MS, count=100)
    write = aggregate(UPDATE, (MAIN,), ns=MS, count=3)._replace(thread=Thread(writer, "MainThread"))
    sample = ParameterSample(read.statement, SITE, 40, 39)
    found = findings(replace(profile_of(read, write), parameters=(sample,)))
    (one,) = [each for each in found if each.category == "duplicate_query"]
    assert one.severity is severity
    assert ("Another process writes" in one.doubt) == (writer == 2)


@pytest.mark.parametrize("executions", [40, 63])
def test_a_statement_is_not_left_out_for_a_rarer_one_with_a_known_line(executions: int) -> None:
    """Few passes of a page's line are timed. Where they hold several executions of the lazy load,
    its time per execution is unknown, and the only known time is that of the page's query.
    """
    page = loop("SELECT c FROM s LIMIT ?", 2, 2, others=81, count=50)
    driver = aggregate(READ, SITE, ns=80 * MS, count=1000)
    lazy = driver, LineTime(READ, SITE, 40, executions, 66, 80 * MS)
    notes = {READ: "lazy load of T.s in template t.html:3"}
    one = replace(profile(page, lazy), notes=notes, stack_samples=())
    found = {one.category for one in findings(one) if one.statement == READ}
    assert found == {"n_plus_one"}


def test_a_library_s_own_statement_is_not_what_a_line_is_for() -> None:
    """Django quotes the parameters of each query that it lists, with a query."""
    read = loop(READ, 40, 40, others=80)
    quote = loop("SELECT QUOTE(?)", 40, 40, others=80, pass_ns=3 * MS)
    own = Frame(OWN[0], f"{DJANGO}operations.py", 1, "library")
    one = profile(read, quote, loop("SELECT c FROM s", 1, 1, others=81, count=3))
    stack = StackSample("SELECT QUOTE(?)", (own, *SITE), 64, MS)
    found = findings(replace(one, stack_samples=(*one.stack_samples, stack)))
    assert {each.statement for each in found if each.category == "n_plus_one"} == {READ}


def span(total_ms: int) -> Span:
    times = Distribution(2, total_ms * MS, total_ms * MS)
    return Span("GET /", 2, 0, 0, 0, 0, times, Distribution(), (), {})


@pytest.mark.parametrize(("second_ms", "in_turns"), [(100, True), (99, False)])
def test_requests_that_run_one_after_another_do_not_wait_for_each_other(
    second_ms: int, in_turns: bool
) -> None:
    slow = [
        SlowSpan("GET /", Thread(1, f"t{at}"), at * MS, 100 * MS, 0, 0, False, 200, ())
        for at in (0, second_ms)
    ]
    one = replace(profile_of(), spans=(span(200),), slow_spans=tuple(slow))
    assert spans_are_sequential(one) == in_turns
    busy = replace(one, spans=(span(2000),))
    assert not spans_are_sequential(busy)


@pytest.mark.parametrize(("count", "is_reported"), [(84, True), (83, False)])
def test_the_other_queries_of_a_line_are_shown(count: int, is_reported: bool) -> None:
    """A line that reads two attributes of each row executes two queries, and both can be joined."""
    other = "SELECT c FROM s WHERE d = ?"
    found = only(
        profile(loop(READ, 40, 40, others=40), loop(other, 40, 40, others=40, count=count))
    )
    assert found.statement == READ
    assert (f"the line runs another query equally often: {other}" in found.evidence) == is_reported


@pytest.mark.parametrize("longer_line", [READ, "SELECT sqlite_compileoption_used(?)"])
def test_the_query_with_more_driver_time_is_chosen(longer_line: str) -> None:
    """Django asks SQLite for its options when a thread first connects. The line's time is the same
    for both queries, but for chance.
    """
    options = "SELECT sqlite_compileoption_used(?)"
    long, short = (
        loop(one, 60, 60, others=60, pass_ns=(201 if one == longer_line else 200) * MS // 100)
        for one in (READ, options)
    )
    short = (short[0]._replace(self_ns=MS // 10, total_ns=MS // 10), short[1])
    found = findings(called(profile(long, short), "__iter__"))
    assert {one.statement for one in found} == {READ}
