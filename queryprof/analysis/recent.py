"""The activity of processes in a short period: their newest calls, lock waits, lock holds and
stalls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from queryprof.analysis.call_sites import CallSite, call_site
from queryprof.analysis.report import Report
from queryprof.model import (
    CallPath,
    LockEvent,
    Process,
    Profile,
    RecentCall,
    StallEvent,
    Thread,
)
from queryprof.operations import FETCH_OPERATIONS, POOL_WAIT


@dataclass(frozen=True, slots=True)
class Period:
    """A period of time, in Unix time (ns)."""

    start_unix_ns: int
    end_unix_ns: int

    @property
    def ns(self) -> int:
        return self.end_unix_ns - self.start_unix_ns

    def overlap_ns(self, start_unix_ns: int, duration_ns: int) -> int:
        """Return how much of a duration lies in the period, in ns; a negative value is the gap
        between them.
        """
        end_unix_ns = min(start_unix_ns + duration_ns, self.end_unix_ns)
        return end_unix_ns - max(start_unix_ns, self.start_unix_ns)


@dataclass(frozen=True, slots=True)
class RecentStatement:
    """The calls of one statement at one call site in a period.

    Attributes:
        total_ns: time in the period.
        max_ns: the duration of the longest call, including any time outside the period.
    """

    statement: str
    site: CallSite
    calls: int
    failed: int
    total_ns: int
    max_ns: int


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """The activity of processes in a period.

    Attributes:
        calls: finished calls and calls in progress, by start.
        statements: longest total time first.
        waits: waits for locks, by start.
        holds: holds of write locks, by start.
        stalls: stalls of event loops, each with the thread of its loop, by start.
        last_calls: the last finished calls of each killed process, newest last, and then its calls
            in progress.
        earliest_unix_ns: for each process whose calls are not kept for the whole period, the start
            of the oldest kept call.
    """

    period: Period
    calls: tuple[RecentCall, ...]
    statements: tuple[RecentStatement, ...]
    waits: tuple[LockEvent, ...]
    holds: tuple[LockEvent, ...]
    stalls: tuple[tuple[Thread | None, StallEvent], ...]
    last_calls: tuple[tuple[Process, tuple[RecentCall, ...]], ...]
    earliest_unix_ns: tuple[tuple[Process, int], ...]


_NOT_KEPT = FETCH_OPERATIONS | {POOL_WAIT}
"""Operations that the recorder does not keep among the newest calls."""

LAST_CALLS = 3
"""The number of finished calls to list for a killed process."""


def end_of_recording(profile: Profile) -> int | None:
    """Return when the newest process ended, in Unix time (ns); None if a process still runs."""
    if profile.running:
        return None
    return max((one.end_unix_ns for one in profile.processes), default=0)


def call_duration_ns(call: RecentCall, end_unix_ns: int) -> int:
    """Return a call's duration; for a call in progress, the time up to `end_unix_ns`."""
    if call.duration_ns is None:
        return max(0, end_unix_ns - call.start_unix_ns)
    return call.duration_ns


def clock_time(at_unix_ns: int) -> str:
    """Return a local time of day with milliseconds."""
    seconds, ns = divmod(at_unix_ns, 10**9)
    return f"{datetime.fromtimestamp(seconds).astimezone():%H:%M:%S}.{ns // 10**6:03}"


def recent_activity(report: Report, period: Period) -> RecentActivity:
    """Return the activity of a profile's processes in a period. The profile must have the newest
    calls.
    """
    profile = report.profile
    by_process: dict[int, list[RecentCall]] = {}
    for call in profile.recent_calls:
        by_process.setdefault(call.thread.process_id, []).append(call)
    calls = tuple(
        call
        for call in profile.recent_calls
        if period.overlap_ns(call.start_unix_ns, call_duration_ns(call, period.end_unix_ns)) >= 0
    )
    events = [
        event
        for event in profile.lock_events
        if period.overlap_ns(event.start_unix_ns, event.duration_ns) > 0
    ]
    events.sort(key=lambda event: event.start_unix_ns)
    stalls = [
        (loop.thread, event)
        for loop in profile.loops
        for event in loop.stall_events
        if period.overlap_ns(event.started_unix_ns, event.duration_ns) > 0
    ]
    return RecentActivity(
        period,
        calls,
        _statements(calls, report, period),
        tuple(event for event in events if event.kind == "wait"),
        tuple(event for event in events if event.kind == "write"),
        tuple(sorted(stalls, key=lambda one: one[1].started_unix_ns)),
        tuple(_last_calls(profile, by_process)),
        tuple(_first_kept_calls(profile, by_process, period)),
    )


def _statements(
    calls: Iterable[RecentCall], report: Report, period: Period
) -> tuple[RecentStatement, ...]:
    sites: dict[CallPath, CallSite] = {}
    groups: dict[tuple[str, CallSite], list[RecentCall]] = {}
    for call in calls:
        if call.path not in sites:
            sites[call.path] = call_site(call.path, report.helpers)
        groups.setdefault((call.statement, sites[call.path]), []).append(call)
    found = []
    for (statement, site), group in groups.items():
        durations = [call_duration_ns(call, period.end_unix_ns) for call in group]
        found.append(
            RecentStatement(
                statement,
                site,
                len(group),
                sum(call.has_failed for call in group),
                sum(
                    max(0, period.overlap_ns(call.start_unix_ns, ns))
                    for call, ns in zip(group, durations, strict=True)
                ),
                max(durations),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.total_ns, one.statement)))


def _last_calls(
    profile: Profile, calls: Mapping[int, list[RecentCall]]
) -> Iterable[tuple[Process, tuple[RecentCall, ...]]]:
    for process in profile.processes:
        identity = (process.pid, process.start_unix_ns, process.host)
        if process.id in calls and not process.clean_end and identity not in profile.running:
            ended = [call for call in calls[process.id] if call.duration_ns is not None]
            in_progress = [call for call in calls[process.id] if call.duration_ns is None]
            yield process, (*ended[-LAST_CALLS:], *in_progress)


def _first_kept_calls(
    profile: Profile, calls: Mapping[int, list[RecentCall]], period: Period
) -> Iterable[tuple[Process, int]]:
    made: Counter[int] = Counter()
    for one in profile.aggregates:
        if one.operation not in _NOT_KEPT:
            made[one.thread.process_id] += one.count
    threads = Counter(thread.process_id for thread in {one.thread for one in profile.aggregates})
    for process in profile.processes:
        kept = [call for call in calls.get(process.id, ()) if call.duration_ns is not None]
        first_unix_ns = kept[0].start_unix_ns if kept else period.end_unix_ns
        # While a process runs, each thread may have a call that is counted and not yet kept.
        is_running = (process.pid, process.start_unix_ns, process.host) in profile.running
        missing = made[process.id] - len(kept) - (threads[process.id] if is_running else 0)
        if missing > 0 and first_unix_ns > period.start_unix_ns:
            yield process, first_unix_ns
