"""Savings if no call waits for a pool connection."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from analysis.by_hand import MAIN, aggregate, profile_of

from queryprof.analysis.findings.find import find
from queryprof.analysis.findings.finding import Finding
from queryprof.analysis.report import Report
from queryprof.model import Aggregate, Exemplar, Profile, StackSample, Thread

pytestmark = pytest.mark.once

MS = 1_000_000
WAIT = "(pool wait)"
LOOP = SimpleNamespace(loop=SimpleNamespace(run_ns=10_000 * MS), stalls=(), functions=())
"""An event loop with only the fields that the rule reads."""


def wait(ms: int, thread: str = "MainThread", count: int = 10, errors: int = 0) -> Aggregate:
    one = aggregate(WAIT, (MAIN,), ns=ms * MS, operation="pool wait", count=count)
    return one._replace(thread=Thread(1, thread), errors=errors)


def only(one: Profile) -> Finding:
    (found,) = (each for each in find(Report(one), lambda *_: None, {}) if each.statement == WAIT)
    return found


def test_threads_wait_side_by_side() -> None:
    """The run saves the longest sum of a thread's waits."""
    found = only(profile_of(wait(300, "a"), wait(500, "b", errors=2)))
    assert (found.category, found.gain_ns) == ("pool_wait", 500 * MS)
    assert found.evidence[0].startswith("20 calls waited for a connection for 800 ms in total")
    assert found.evidence[0].endswith(", and 2 gave up")
    assert not found.doubt


@pytest.mark.parametrize(("ms", "is_doubtful"), [(500, True), (499, False)])
def test_a_busy_database_may_be_what_they_wait_for(ms: int, is_doubtful: bool) -> None:
    """Other calls take half of the run."""
    query = aggregate("SELECT a FROM t WHERE b = ?", (MAIN,), ns=ms * MS, count=10)
    found = only(profile_of(wait(300), query))
    assert ("wait for it in turn" in found.doubt) == is_doubtful


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
    object.__setattr__(report, "loops", (LOOP,))
    (found,) = find(report, lambda *_: None, {})
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
