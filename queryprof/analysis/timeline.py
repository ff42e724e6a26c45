"""The timeline: the rate of database calls and the share of time in the database over the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from queryprof.model import Interval, Profile


@dataclass(frozen=True, slots=True)
class TimelineInterval:
    """One interval of the run.

    Attributes:
        start_ns: the time since the start of the run.
        calls_per_s, rows_per_s: driver calls and rows per second.
        busy: database time divided by the interval's length; 1 means that one thread was in the
            database all the time.
    """

    start_ns: int
    calls_per_s: float
    rows_per_s: float
    busy: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """The run in intervals of one width, without gaps. The last interval may be shorter.

    Attributes:
        width_ns: the width of an interval; 0 if there are no intervals.
    """

    width_ns: int
    moments: tuple[TimelineInterval, ...]


def timeline_of(profile: Profile, max_intervals: int) -> Timeline:
    """Return the timeline of a profile in at most `max_intervals` intervals. Each interval covers
    one or several intervals of the trace. Rates in the first and last interval are computed for the
    part within the run.
    """
    width_ns = profile.timeline_width_ns
    if not profile.timeline or not width_ns or not profile.processes:
        return Timeline(0, ())
    start_ns, end_ns = profile.span_unix_ns
    first = min(start_ns, *(one.start_unix_ns for one in profile.timeline)) // width_ns
    last = max(end_ns - 1, *(one.start_unix_ns for one in profile.timeline)) // width_ns
    each = -(-(last - first + 1) // max_intervals)
    found: dict[int, list[Interval]] = {}
    for one in profile.timeline:
        found.setdefault((one.start_unix_ns // width_ns - first) // each, []).append(one)
    wide_ns = each * width_ns
    moments = [
        _interval_at(
            found,
            number,
            max(start_ns, (first + number * each) * width_ns),
            start_ns,
            min(end_ns, (first + (number + 1) * each) * width_ns),
        )
        for number in range((last - first) // each + 1)
    ]
    return Timeline(wide_ns, tuple(moments))


def _interval_at(
    found: Mapping[int, list[Interval]], number: int, from_ns: int, start_ns: int, to_ns: int
) -> TimelineInterval:
    members = found.get(number, ())
    seconds = max(to_ns - from_ns, 1) / 1e9
    return TimelineInterval(
        from_ns - start_ns,
        sum(one.calls for one in members) / seconds,
        sum(one.rows for one in members) / seconds,
        sum(one.self_ns for one in members) / 1e9 / seconds,
    )
