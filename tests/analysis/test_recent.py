"""What processes did in a period: what belongs to it, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import MAIN, aggregate, process, profile_of

from queryprof.analysis.recent import LAST_CALLS, Period, end_of_recording, recent_activity
from queryprof.analysis.report import Report
from queryprof.model import (
    Distribution,
    Frame,
    LockEvent,
    Loop,
    Profile,
    RecentCall,
    StallEvent,
    Thread,
)

pytestmark = pytest.mark.once

S = 10**9
OTHER = Frame("other", "/app/other.py", 3)


def call(
    start_ns: int,
    ns: int | None,
    statement: str = "SELECT 1",
    frame: Frame = MAIN,
    process_id: int = 1,
    has_failed: bool = False,
) -> RecentCall:
    thread = Thread(process_id, "MainThread")
    return RecentCall(statement, (frame,), "", thread, "execute", start_ns, ns, has_failed)


def with_calls(*calls: RecentCall, made: int | None = None) -> Profile:
    """Return a profile with the calls; `made` is how many calls the process has made."""
    whole = profile_of(aggregate("SELECT 1", count=len(calls) if made is None else made))
    return replace(whole, recent_calls=calls)


@pytest.mark.parametrize(
    ("start_ns", "ns", "is_in"),
    [
        (8 * S, S, False),
        (8 * S, 2 * S, True),  # it ended at the start of the period
        (20 * S, S, True),
        (20 * S + 1, S, False),
        (5 * S, None, True),
        (21 * S, None, False),
    ],
)
def test_calls_of_the_period(start_ns: int, ns: int | None, is_in: bool) -> None:
    found = recent_activity(Report(with_calls(call(start_ns, ns))), Period(10 * S, 20 * S))
    assert bool(found.calls) is is_in


def test_only_the_time_in_the_period_counts() -> None:
    """A call that began before counts from the start of the period, one in progress to its end."""
    calls = (
        call(5 * S, 7 * S, frame=OTHER),
        call(11 * S, S),
        call(12 * S, S, has_failed=True),
        call(19 * S, None),
    )
    found = recent_activity(Report(with_calls(*calls)), Period(10 * S, 20 * S)).statements
    assert [(one.site.frame, one.calls, one.failed) for one in found] == [
        (MAIN, 3, 1),
        (OTHER, 1, 0),
    ]
    assert [one.total_ns for one in found] == [3 * S, 2 * S]
    assert [one.max_ns for one in found] == [S, 7 * S]


def test_a_process_whose_older_calls_were_overwritten_is_named() -> None:
    kept = (call(15 * S, S), call(16 * S, S))
    for made, period_start, is_named in ((2, 10, False), (3, 10, True), (3, 15, False)):
        profile = with_calls(*kept, made=made)
        found = recent_activity(Report(profile), Period(period_start * S, 20 * S))
        expected = [(profile.processes[0], 15 * S)] if is_named else []
        assert list(found.earliest_unix_ns) == expected


@pytest.mark.parametrize(("made", "is_named"), [(3, False), (4, True)])
def test_a_running_thread_may_have_a_call_that_is_not_kept_yet(made: int, is_named: bool) -> None:
    profile = with_calls(call(15 * S, S), call(16 * S, S), made=made)
    (process,) = profile.processes
    running = frozenset({(process.pid, process.start_unix_ns, process.host)})
    found = recent_activity(Report(replace(profile, running=running)), Period(10 * S, 20 * S))
    assert bool(found.earliest_unix_ns) == is_named


def test_the_last_calls_of_a_killed_process_end_with_those_in_progress() -> None:
    calls = (*(call(n * S, S) for n in range(1, 8)), call(3 * S, None))
    ended = with_calls(*calls)
    killed = replace(ended, processes=(replace(process(1), clean_end=False),))
    identity = (killed.processes[0].pid, killed.processes[0].start_unix_ns, "host")
    running = replace(
        killed,
        processes=(replace(killed.processes[0], host="host"),),
        running=frozenset({identity}),
    )
    period = Period(0, 20 * S)
    assert recent_activity(Report(ended), period).last_calls == ()
    assert recent_activity(Report(running), period).last_calls == ()
    ((of, last),) = recent_activity(Report(killed), period).last_calls
    assert of.pid == killed.processes[0].pid
    assert last == (*calls[-1 - LAST_CALLS : -1], calls[-1])


def loop(stalls: tuple[StallEvent, ...]) -> Loop:
    never = Distribution()
    figures = (1, S, S, 1, 0, 0)
    thread = Thread(1, "MainThread")
    return Loop("asyncio", thread, True, *figures, never, never, (), (), stalls)


def test_waits_holds_and_stalls_that_overlap_the_period() -> None:
    def event(kind: str, start_s: int, s: int) -> LockEvent:
        thread = Thread(1, "MainThread")
        return LockEvent(kind, "a.db", "COMMIT", (MAIN,), "", thread, "", (), start_s * S, s * S)

    events = (
        event("wait", 21, 1),
        event("write", 8, 3),
        event("read", 11, 2),
        event("wait", 19, 5),
        event("wait", 5, 5),
        event("wait", 12, 1),
    )
    stalls = (StallEvent(OTHER, (), (), 9 * S, 2 * S), StallEvent(OTHER, (), (), 20 * S, S))
    profile = replace(
        with_calls(call(11 * S, S)),
        lock_events=events,
        loops=(loop(stalls),),
    )
    found = recent_activity(Report(profile), Period(10 * S, 20 * S))
    assert [one.start_unix_ns for one in found.waits] == [12 * S, 19 * S]
    assert [one.start_unix_ns for one in found.holds] == [8 * S]
    assert [stall.started_unix_ns for _, stall in found.stalls] == [9 * S]


def test_the_newest_period_ends_with_the_last_process() -> None:
    profile = with_calls(call(11 * S, S))
    (one,) = profile.processes
    assert end_of_recording(profile) == one.end_unix_ns
    assert end_of_recording(replace(profile, running=frozenset({(1, 2, "h")}))) is None
