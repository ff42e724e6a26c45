"""Savings in a loop whose statements are handed to a thread, on profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.handoffs import MAX_IDLE_WAIT_NS
from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.findings.source_lines import NO_TASKS, TaskFinder
from queryprof.model import Aggregate, Frame, Handoff, LineTime, Plan, Profile, Span, Thread
from queryprof.model.loops import Distribution

pytestmark = pytest.mark.once

MS = 1_000_000
READ = "SELECT a FROM t WHERE b = ?"
OTHER = "SELECT c FROM u WHERE d = ?"
EXECUTE = (QUERY, MAIN)
FETCH = (replace(QUERY, line=QUERY.line + 1), MAIN)
SLEEP_NS = 20_000


def handed(path: tuple[Frame, ...], count: int, each_ns: int) -> Handoff:
    """Return work of 5 us that waits this long for the thread, and this long for the loop."""
    waits, work = (
        Distribution(count, ns * count, ns, {histogram_bucket(ns): count}) for ns in (each_ns, 5000)
    )
    return Handoff("aiosqlite", path, "", count, 0, 0, waits, work, waits, waits)


def findings(
    aggregates: list[Aggregate], *handoffs: Handoff, makes_tasks: TaskFinder = NO_TASKS
) -> dict[str, Finding]:
    profile = replace(profile_of(*aggregates), handoffs=handoffs)
    return found_in(profile, makes_tasks)


def found_in(profile: Profile, makes_tasks: TaskFinder = NO_TASKS) -> dict[str, Finding]:
    report = Report(profile)
    found = find_all(report, lambda frame, _: replace(frame, line=1), {}, makes_tasks=makes_tasks)
    return {one.statement: one for one in found}


def reads(statement: str = READ, count: int = 100, ns: int = MS) -> Aggregate:
    return aggregate(statement, EXECUTE, ns=ns, count=count)


def near(number: float) -> object:
    """Return the value as precisely as a histogram knows it."""
    return pytest.approx(number, rel=0.04)


def test_a_loop_wins_the_way_to_the_thread_and_back() -> None:
    """This counts the line, and those lines of the function that only fetch."""
    found = findings(
        [reads()],
        handed(EXECUTE, 100, SLEEP_NS),
        handed(FETCH, 200, SLEEP_NS),
        handed((MAIN,), 50, SLEEP_NS),
    )[READ]
    assert found.gain_ns == near(0.99 * (MS + 300 * 2 * SLEEP_NS))
    assert "passing each call to a thread and back takes 1" in found.evidence[0]  # 120 us


def test_statements_of_a_line_share_it() -> None:
    """The way counts by their executions. A statement of another line gets no part of it."""
    elsewhere = aggregate(OTHER, FETCH, ns=MS, count=50)
    found = findings([reads(), elsewhere], handed(EXECUTE, 100, SLEEP_NS))
    assert found[READ].gain_ns == near(0.99 * (MS + 100 * 2 * SLEEP_NS))
    both = findings([reads(), reads(OTHER, count=300)], handed(EXECUTE, 400, SLEEP_NS))
    assert both[OTHER].gain_ns == near(0.9967 * (MS + 300 * 2 * SLEEP_NS))


@pytest.mark.parametrize(("thread", "is_counted"), [("worker", True), ("MainThread", False)])
def test_a_function_that_is_handed_to_a_thread(thread: str, is_counted: bool) -> None:
    """The line hands a function over, which executes the statement in the thread."""
    work = reads(ns=30 * MS)._replace(thread=Thread(1, thread))
    found = findings([work], handed((MAIN,), 100, SLEEP_NS))
    assert found[READ].gain_ns == near(0.99 * (30 * MS + is_counted * 100 * 2 * SLEEP_NS))


@pytest.mark.parametrize(("thread", "is_shared"), [("worker", False), ("MainThread", True)])
def test_what_the_main_thread_executes_was_not_handed_over(thread: str, is_shared: bool) -> None:
    """The line's other statement runs in a thread."""
    other = reads(OTHER)._replace(thread=Thread(1, thread))
    found = findings([reads(ns=30 * MS), other], handed(EXECUTE, 200, SLEEP_NS))
    assert ("passing each call to a thread" in found[READ].evidence[0]) == is_shared
    assert "passing each call to a thread" in found[OTHER].evidence[0]


@pytest.mark.parametrize(("each_ns", "is_counted"), [(94_000, True), (106_000, False)])
def test_waits_side_by_side_are_not_added_up(each_ns: int, is_counted: bool) -> None:
    """If half of the waits are long, many of them happen at once."""
    assert 94_000 < MAX_IDLE_WAIT_NS < 106_000
    found = findings([reads(ns=30 * MS)], handed(EXECUTE, 100, each_ns))[READ]
    assert (found.gain_ns > 30 * MS) == is_counted
    assert ("passing each call to a thread" in found.evidence[0]) == is_counted
    assert found.is_least != is_counted


@pytest.mark.parametrize(
    ("of_query", "of_main", "is_counted"),
    [(False, False, True), (True, False, False), (False, True, False), (False, None, False)],
)
def test_long_waits_are_added_up_where_the_source_shows_no_task(
    of_query: bool, of_main: bool | None, is_counted: bool
) -> None:
    """The waits are long because the loop and the threads are busy with other requests."""
    makes = {QUERY: of_query, MAIN: of_main}
    found = findings(
        [reads(ns=30 * MS)],
        handed(EXECUTE, 100, MS),
        makes_tasks=lambda frame: makes.get(frame, False),
    )[READ]
    assert found.gain_ns == near(0.99 * (30 * MS + (100 * 2 * MS if is_counted else 0)))


def test_requests_side_by_side_wait_their_own_time() -> None:
    """The waits are 10 s in a run of one second. The driver's time is part of the run."""
    durations = Distribution(10, 10_000 * MS, 1000 * MS, {histogram_bucket(1000 * MS): 10})
    spans = (Span("GET /", 10, 0, 0, 0, 30 * MS, durations, Distribution(), (), {}),)
    waits = handed(EXECUTE, 100, 20 * MS)
    profile = replace(profile_of(reads(ns=30 * MS)), handoffs=(waits,), spans=spans)
    found = found_in(profile, lambda _: False)[READ]
    assert (found.whole, found.share) == ("spans' time", near(0.99 * (4000 + 30) / 10_000))
    found = found_in(replace(profile, handoffs=()))[READ]
    assert (found.whole, found.share) == ("run", near(0.99 * 0.03))


@pytest.mark.parametrize(("each_ns", "category"), [(30_000, "n_plus_one"), (10, "full_scan")])
def test_what_wins_most_is_the_cause(each_ns: int, category: str) -> None:
    """A scan runs for each row of another query: scan less, or not at all."""
    parent = aggregate("SELECT b FROM s", (MAIN,), ns=MS, count=1)._replace(rows=100)
    scan = reads(ns=4 * MS)._replace(
        rows=100, full_scan_steps=100 * 2000, vm_steps=100 * 12_000, counted=100
    )
    profile = replace(
        profile_of(parent, scan),
        handoffs=(handed(EXECUTE, 100, each_ns),),
        plans=(Plan(READ, "/app/t.db", "SCAN t"),),
    )
    found = found_in(profile)[READ]
    assert found.category == category
    assert any("SCAN t" in one for one in found.evidence)


def test_a_line_that_fetches_is_of_the_statement_whose_rows_it_fetches() -> None:
    """This holds whatever else its function executes, and however often."""
    fetched = aggregate(READ, EXECUTE, ns=MS, operation="fetchone", count=100)._replace(rows=100)
    write = aggregate(
        "INSERT INTO t VALUES (?)", (replace(QUERY, line=QUERY.line + 2), MAIN), count=5000
    )
    found = findings([reads(count=1), fetched, write], handed(FETCH, 100, SLEEP_NS))
    assert found[READ].category == "awaited_rows"
    assert found[READ].gain_ns == near(0.99 * 100 * 2 * SLEEP_NS)


@pytest.mark.parametrize(("line_ns", "is_said"), [(10_000, False), (10 * MS, True)])
def test_a_line_that_only_awaits_has_no_time(line_ns: int, is_said: bool) -> None:
    """Its time ends at the `await`, before the thread has executed the statement."""
    time = LineTime(READ, EXECUTE, 100, 100, 0, 100 * line_ns)
    profile = replace(
        profile_of(reads()), handoffs=(handed(EXECUTE, 100, SLEEP_NS),), line_times=(time,)
    )
    evidence = found_in(profile)[READ].evidence[0]
    assert "passing each call to a thread and back" in evidence
    assert ("the line takes" in evidence) == is_said
