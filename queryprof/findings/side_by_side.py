"""Threads that run at the same time. Their times for one statement include waiting for each other,
and a background thread's time is part of the run only while the main thread waits.
"""

from __future__ import annotations

from math import inf

from queryprof.analysis.units import duration
from queryprof.findings.groups import MAIN_THREAD, Group
from queryprof.model import Profile

MAX_THREADS = 60
"""The most threads with names of their own in a recording, minus a margin."""


def share_without_waits(group: Group) -> float:
    """Return the part of its time that a statement would take if each execution took the median.
    Among parallel threads, few executions wait for each other, but these wait long. For one thread,
    the part is 1.
    """
    return min(1.0, group.alone_ns / max(group.steady_ns, 1)) if group.threads > 1 else 1.0


def threads_doubt(group: Group) -> str:
    if group.threads < 2:
        return ""
    number = f"{group.threads} threads" if group.threads < MAX_THREADS else "Many threads"
    return (
        f"{number} run it: their waits for each other (the interpreter's lock) are not counted."
        f" If each execution took the median, the total would be {duration(group.alone_ns)}"
        f" instead of {duration(group.steady_ns)}."
    )


IN_BACKGROUND = (
    "It runs in a background thread while the main thread works: the fix saves time only if"
    " something waits for that thread."
)


WORKS = 0.2
"""The main thread works if its CPU time is at least this share of the run."""


def longest_gain_ns(group: Group, profile: Profile) -> float:
    """Return the most that the run can become shorter without the executions of a background
    thread, if the main thread works meanwhile: its own work remains. It is infinite for other
    threads and for calls that are handed to a thread.
    """
    frames = {frame for one in profile.handoffs for frame in one.path[:1]}
    handed = any(frame in frames for one in group.members for frame in one.path)
    if handed or len(group.process_ids) != 1 or any(one.span for one in group.members):
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
