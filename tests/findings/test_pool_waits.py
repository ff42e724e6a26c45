"""Savings if no call waits for a pool connection."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.model import Aggregate, Exemplar, Profile, StackSample, Thread

pytestmark = pytest.mark.once

MS = 1_000_000
WAIT = "(pool wait)"


def loop(busy_ms: int = 0) -> SimpleNamespace:
    """Return an event loop with only the fields that the rule reads."""
    figures = SimpleNamespace(run_ns=10_000 * MS, busy_ns=busy_ms * MS)
    return SimpleNamespace(loop=figures, stalls=(), functions=())


def wait(ms: int, thread: str = "MainThread", count: int = 10, errors: int = 0) -> Aggregate:
    one = aggregate(WAIT, (MAIN,), ns=ms * MS, operation="pool wait", count=count)
    return one._replace(thread=Thread(1, thread), errors=errors)


def only(one: Profile) -> Finding:
    (found,) = (
        each for each in find_all(Report(one), lambda *_: None, {}) if each.statement == WAIT
    )
    return found


def test_threads_wait_side_by_side() -> None:
    """The run saves the longest sum of a thread's waits."""
    found = only(profile_of(wait(300, "a"), wait(500, "b", errors=2)))
    assert (found.category, found.gain_ns) == ("pool_wait", 500 * MS)
    assert found.evidence[0].startswith("20 calls waited for a connection for 800 ms in total")
    assert found.evidence[0].endswith(", and 2 gave up")
    assert not found.doubt


@pytest.mark.parametrize(
    ("connections", "ms", "is_used"),
    [(1, 150, True), (1, 149, False), (2, 300, True), (2, 299, False)],
)
def test_connections_that_are_used_for_queries_are_busy(
    connections: int, ms: int, is_used: bool
) -> None:
    """They are in queries for half of the time in which a thread waits for one."""
    connect = aggregate("(connect)", (MAIN,), ns=0, count=connections)._replace(operation="connect")
    query = aggregate("SELECT a FROM t WHERE b = ?", (MAIN,), ns=ms * MS, count=10)
    found = only(profile_of(wait(300), query, connect))
    assert ("moves the wait" in found.doubt) == is_used
    assert (found.severity is Severity.LOW) == is_used


@pytest.mark.parametrize(("busy_ms", "saved_ms"), [(0, 100), (9_900, 100), (9_950, 50)])
def test_the_computing_of_a_loop_remains(busy_ms: int, saved_ms: int) -> None:
    report = Report(profile_of(wait(100, count=1)))
    object.__setattr__(report, "loops", (loop(busy_ms),))
    (found,) = find_all(report, lambda *_: None, {})
    assert found.gain_ns == pytest.approx(saved_ms * MS, rel=0.03)


@pytest.mark.parametrize(
    ("starts_ms", "saved_ms"), [((0, 0), 100), ((0, 50), 150), ((0, 300), 200)]
)
def test_tasks_of_a_loop_wait_at_once(starts_ms: tuple[int, int], saved_ms: int) -> None:
    """Two tasks wait for 100 ms each. The loop runs for ten seconds."""
    base = profile_of(wait(200, count=2))
    longest = [
        Exemplar(
            WAIT,
            (MAIN,),
            "",
            Thread(1, "MainThread"),
            "pool wait",
            start * MS,
            100 * MS,
            0,
            (MAIN,),
            None,
            None,
        )
        for start in starts_ms
    ]
    one = replace(base, exemplars=tuple(longest))
    report = Report(one)
    object.__setattr__(report, "loops", (loop(),))
    (found,) = find_all(report, lambda *_: None, {})
    assert found.gain_ns == pytest.approx(saved_ms * MS, rel=0.03)


def test_a_pool_of_psycopg_may_still_be_opening_connections() -> None:
    library = StackSample(
        WAIT,
        (replace(MAIN, file="/venv/site-packages/psycopg_pool/pool.py", kind="library"), MAIN),
        64,
        1,
    )
    found = only(replace(profile_of(wait(300)), stack_samples=(library,)))
    assert "still be opening connections" in found.doubt
