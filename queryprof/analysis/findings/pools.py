"""Findings about waiting for a connection of a pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from queryprof.analysis.findings.finding import Finding
from queryprof.analysis.findings.groups import Group
from queryprof.analysis.findings.program import Program
from queryprof.analysis.units import counted, duration
from queryprof.model import Thread

POOL_WAIT = "(pool wait)"

BUSY_SHARE = 0.5
"""From this share of the run in other calls, the database may be what all connections wait for."""


def pool_wait(program: Program) -> Iterator[Finding | None]:
    """Yield a finding per line that waits for a connection."""
    for group in program.groups:
        if group.statement != POOL_WAIT:
            continue
        totals = group.totals
        failed = f", and {totals.errors:,} gave up" if totals.errors else ""
        yield program.finding(
            "pool_wait",
            group,
            _saved_ns(program, group),
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
            doubt=(
                "Other calls take half of the run or more. If the database is busy, more"
                " connections wait for it in turn."
                if _others_ns(program) >= BUSY_SHARE * program.run_ns
                else ""
            ),
        )


def _saved_ns(program: Program, group: Group) -> float:
    """Return the time that no waiting would save.

    Each request saves its own waits. A thread saves its waits, too, and the run the longest sum of
    a thread. If tasks wait together in the thread of an event loop, there are on average
    `waited / loop's run` of them beside one or more that work. With enough connections they all
    work at once.
    """
    if program.spans:
        return group.totals.total_ns
    by_thread: dict[Thread, int] = defaultdict(int)
    for member in group.members:
        by_thread[member.thread] += member.total_ns
    waited_ns = max(by_thread.values())
    ran_ns = max((one.loop.run_ns for one in program.report.loops), default=program.run_ns)
    if waited_ns > ran_ns:
        return waited_ns * ran_ns / (waited_ns + ran_ns)
    return waited_ns


def _others_ns(program: Program) -> int:
    return sum(one.totals.self_ns for one in program.groups if one.statement != POOL_WAIT)
