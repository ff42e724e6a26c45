"""Gains of statements in several threads. The threads' times include waits for each other. A
background thread delays the run only while the main thread waits.
"""

from __future__ import annotations

from math import inf

from queryprof.analysis.units import duration
from queryprof.findings.groups import MAIN_THREAD, StatementGroup
from queryprof.model import Profile

MAX_THREADS = 60
"""The most threads with names of their own in a recording, minus a margin."""


MOST_MEDIAN = 0.5
"""Threads wait for each other if the median execution takes at most this share of the mean. The
median of executions in a single thread took 0.72 of the mean, and more.
"""


def share_without_waits(group: StatementGroup) -> float:
    """Return the share of a statement's time that remains if each execution takes the median time.
    Among parallel threads, few executions wait for each other, but these few wait long. The share
    is 1 for one thread, and for threads that seem to take turns.
    """
    share = group.total_median_ns / max(group.steady_ns, 1)
    return share if group.parallel_threads > 1 and share <= MOST_MEDIAN else 1.0


def parallel_threads_doubt(group: StatementGroup) -> str:
    if share_without_waits(group) == 1.0:
        return ""
    number = f"{group.threads} threads" if group.threads < MAX_THREADS else "many threads"
    return (
        f"This query runs in {number}, which may wait for the interpreter's lock. Without these"
        f" waits, the query takes {duration(group.total_median_ns)} instead of"
        f" {duration(group.steady_ns)} (estimated from the median)."
    )


IN_BACKGROUND = (
    "The query runs in a background thread while the main thread works: the fix saves time only if"
    " something waits for that thread."
)


WORKS = 0.2
"""The main thread works if its CPU time is at least this share of the run."""


def longest_gain_ns(group: StatementGroup, profile: Profile, is_awaited: bool = False) -> float:
    """Return the most time that the run can save without the group's executions in a background
    thread. If the main thread works at the same time, the main thread's own work remains. The
    result is infinite (no limit) if a call runs in the main thread or in a span, if the calls were
    handed to a thread or come from several processes, or if the main thread hardly works.

    Args:
        is_awaited: whether the driver hands its calls to a thread, and the program awaits them.
    """
    frames = {frame for one in profile.handoffs for frame in one.path[:1]}
    handed = any(frame in frames for one in group.members for frame in one.path)
    if handed or is_awaited or len(group.process_ids) != 1:
        return inf
    if any(one.span for one in group.members):
        return inf
    if any(one.thread.name == MAIN_THREAD for one in group.members):
        return inf
    (process_id,) = group.process_ids
    wall_ns = sum(one.wall_ns for one in profile.processes if one.id == process_id)
    main_ns = sum(
        one.user_ns + one.system_ns
        for one in profile.thread_usage
        if one.thread.process_id == process_id and one.thread.name == MAIN_THREAD
    )
    return wall_ns - main_ns if WORKS * wall_ns <= main_ns < wall_ns else inf
