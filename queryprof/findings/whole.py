"""The total time (100%) that the shares of findings refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from queryprof.analysis.library_frames import frames_outside_request, is_request
from queryprof.model import Profile, Thread

RUN = "run"
SPANS = "spans' time"
PROCESSES = "time of the processes with queries"
SERVER_BUSY_TIME = "busy time"
PROGRAM_BUSY_TIME = "program's busy time"

MOSTLY_WAITING = 0.5
"""A program that is busy for a smaller share of its run mostly waits, for example for a scheduler
or a client.
"""

MIN_VOLUNTARY_RATIO = 2
"""The kernel counts a switch as voluntary if a process waits, and as involuntary if it preempts the
process. With at least this many voluntary switches per involuntary one, a process mostly waits.
"""

MAX_YIELDS_PER_SYNC, MAX_YIELDS_PER_HANDOFF = 5, 3
"""Maximum CPU yields per file sync, and per call handed to a thread and back. Measured: 4.0 to 4.2
per sync (1,800 and 2,001 syncs, ext4), and 2.4 to 2.7 per handoff (2,008 and 4,800 handoffs).
"""


def reference_time(profile: Profile, spans_ns: int) -> tuple[int, str]:
    """Return the time in ns that shares refer to, and its name. With spans, this is the time of the
    spans, if it is less than the time of the run. For a server without spans, and for a program
    that mostly waits, it is the busy time. Otherwise it is the time of the run or, in a collapsed
    trace of several processes, the total time of the processes that execute statements.
    """
    executing = {aggregate.thread.process_id for aggregate in profile.aggregates}
    walls = [one.wall_ns for one in profile.processes if one.id in executing]
    longest_ns = max((one.wall_ns for one in profile.processes), default=0)
    number, walls_ns = len(walls), sum(walls)
    if profile.collapsed:
        number += profile.collapsed.executing
        walls_ns += profile.collapsed.executing_wall_ns
    whole = (walls_ns, PROCESSES) if number > 1 else (longest_ns, RUN)
    if 0 < spans_ns < whole[0]:
        return spans_ns, SPANS
    busy_ns = 0 if spans_ns else _busy_ns(profile)
    is_server = busy_ns > 0 and _serves_requests(profile)
    if is_server and busy_ns < whole[0]:
        return busy_ns, SERVER_BUSY_TIME
    if 0 < busy_ns < MOSTLY_WAITING * whole[0] and _waits_voluntarily(profile):
        return busy_ns, PROGRAM_BUSY_TIME
    if number > 1 and not profile.collapsed:
        return max(longest_ns, run_union_ns(profile, executing)), RUN
    return whole


def run_union_ns(profile: Profile, ids: AbstractSet[int]) -> int:
    """Return how long at least one of the processes ran."""
    covered_ns = end_ns = 0
    for one in sorted(profile.processes, key=lambda one: one.recorded_unix_ns):
        if one.id in ids and one.end_unix_ns > end_ns:
            covered_ns += one.end_unix_ns - max(one.recorded_unix_ns, end_ns)
            end_ns = one.end_unix_ns
    return covered_ns


def _serves_requests(profile: Profile) -> bool:
    """Return whether the program serves requests that come from outside, not from its own test."""
    stacks = [one.stack for one in profile.stack_samples]
    stacks += [one.stack for one in profile.exemplars]
    return any(is_request(stack) and not frames_outside_request(stack) for stack in stacks)


def _waits_voluntarily(profile: Profile) -> bool:
    """Return whether the program yielded the CPU to wait, and was not merely preempted on a busy
    machine.
    """
    syncs = sum(one.syncs for one in profile.file_work)
    handoffs = sum(one.count for one in profile.handoffs)
    of_database = MAX_YIELDS_PER_SYNC * syncs + MAX_YIELDS_PER_HANDOFF * handoffs
    voluntary = sum(one.voluntary_switches for one in profile.thread_usage) - of_database
    return voluntary > MIN_VOLUNTARY_RATIO * sum(
        one.involuntary_switches for one in profile.thread_usage
    )


def _busy_ns(profile: Profile) -> int:
    """Return how long threads computed or were in the database; 0 if unknown."""
    database_ns: Counter[Thread] = Counter()
    for one in profile.aggregates:
        database_ns[one.thread] += one.self_ns
    ran_ns = {used.thread: used.user_ns + used.system_ns for used in profile.thread_usage}
    if not ran_ns.keys() >= database_ns.keys():
        return 0
    executing = {thread.process_id for thread in database_ns}
    return sum(
        max(ns, database_ns[thread])
        for thread, ns in ran_ns.items()
        if thread.process_id in executing
    )
