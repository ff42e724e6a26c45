"""Findings about waiting for a connection of a pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from queryprof.analysis.units import counted, duration
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.groups import StatementGroup
from queryprof.findings.program import Program
from queryprof.model import Thread
from queryprof.model.loops import Loop
from queryprof.operations import POOL_WAIT as OPERATION

POOL_WAIT = f"({OPERATION})"

BUSY_SHARE = 0.5
"""The connections are busy with the database if their other calls take at least this share of the
time in which tasks wait. The share was 0.6 and 1.0 for connections that were given back at once,
and 0.1 for a connection that was kept during other work.
"""


def find_pool_waits(program: Program) -> Iterator[Finding | None]:
    """Yield a finding per line that waits for a connection."""
    for group in program.groups:
        if group.statement != POOL_WAIT:
            continue
        totals = group.totals
        is_used = _is_pool_in_use(program, group)
        failed = f", and {totals.errors:,} gave up" if totals.errors else ""
        yield program.make_finding(
            "pool_wait",
            group,
            _ns_saved_without_waits(program, group),
            (
                (
                    f"{counted(totals.calls, 'call')} waited for a connection for"
                    f" {duration(totals.total_ns)} in total (longest"
                    f" {duration(totals.max_call_ns)}){failed}"
                ),
            ),
            "Give each connection back before other work (requests to other services, computing,"
            " sleeping): end the `with` block, or close the session. If that is not possible, make"
            " the pool larger: pool_size and max_overflow in SQLAlchemy, max_size in psycopg_pool"
            " and asyncpg.",
            doubt=USED if is_used else _pool_doubt(program, group),
            most=Severity.LOW if is_used else Severity.HIGH,
        )


USED = (
    "While calls wait, the pool's connections run queries most of the time. If the database is"
    " busy, a larger pool only moves the wait to the database."
)


def _is_pool_in_use(program: Program, group: StatementGroup) -> bool:
    """Return whether the pool's connections run queries while tasks wait for a connection."""
    others_ns = sum(one.totals.self_ns for one in program.groups if one.statement != POOL_WAIT)
    connections = sum(one.calls_by_operation.get("connect", 0) for one in program.all_groups)
    return others_ns >= BUSY_SHARE * max(1, connections) * _waiting_ns(program, group)


def _pool_doubt(program: Program, group: StatementGroup) -> str:
    if "psycopg_pool" in program.timed_library(group.statement):
        return "The pool may still be opening connections: open the pool early, or raise min_size."
    return ""


def _ns_saved_without_waits(program: Program, group: StatementGroup) -> float:
    """Return the time that the program would save if no call waited for a connection.

    - With requests (spans): all waits, because each request saves its own waits.
    - With threads: the waits of the thread that waits longest.
    - With an event loop: the time in which one or more tasks wait, because tasks wait at the same
      time. The share of overlapping time comes from the longest waits, whose start and end are
      recorded. The loop saves no more than its idle time, because its own computing remains.
    - An event loop also cannot save all of its time: on average, `waited / run` tasks wait while
      one or more tasks work. With enough connections, all of these tasks work. The loop then runs
      for `run / (1 + waited / run)`.
    """
    return group.totals.total_ns if program.spans else _waiting_ns(program, group)


def _waiting_ns(program: Program, group: StatementGroup) -> float:
    by_thread: dict[Thread, int] = defaultdict(int)
    for member in group.members:
        by_thread[member.thread] += member.total_ns
    waited_ns = max(by_thread.values())
    longest = max((one.loop for one in program.report.loops), key=_loop_run_ns, default=None)
    if longest is None or not longest.run_ns:
        return waited_ns
    loops_ns = longest.run_ns
    at_once_ns = waited_ns * loops_ns / (waited_ns + loops_ns)
    idle_ns = loops_ns - min(longest.busy_ns, loops_ns)
    return min(waited_ns * _share_without_overlaps(program, group), at_once_ns, idle_ns)


def _loop_run_ns(loop: Loop) -> int:
    return loop.run_ns


def _share_without_overlaps(program: Program, group: StatementGroup) -> float:
    """Return the time in which at least one of the longest calls waits, divided by the sum of their
    waits.
    """
    threads = {each.thread for each in group.members}
    intervals = sorted(
        (one.started_unix_ns, one.started_unix_ns + one.duration_ns)
        for one in program.profile.exemplars
        if one.statement == POOL_WAIT and one.thread in threads
    )
    union_ns = until_ns = 0
    for start_ns, end_ns in intervals:
        union_ns += max(0, end_ns - max(start_ns, until_ns))
        until_ns = max(until_ns, end_ns)
    total_ns = sum(end_ns - start_ns for start_ns, end_ns in intervals)
    return union_ns / total_ns if total_ns else 1.0
