"""Event loops: their lag, the causes of their stalls, and the waits of other callbacks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from queryprof.analysis.call_sites import CallSite, Function, call_site
from queryprof.analysis.histogram import bucket_bounds
from queryprof.analysis.summary import Summary, summarize_durations
from queryprof.model import Distribution, Frame, Loop, Profile, Stall, Step

DATABASE = "database"
COLLECTION = "garbage collection"
WAITING = "waiting"
COMPUTING = "computing"
HOLDING = "C code that holds the GIL"
UNKNOWN = "unknown"
"""The category of a stall that neither the database nor garbage collection explains, and whose CPU
time is unknown.
"""

MAJORITY = 0.5

C_CODE_GIL_WAIT_NS = 25_000_000
"""Python code releases the GIL to waiting threads within a few switch intervals
(sys.getswitchinterval, 5 ms). If the mean wait for the GIL is longer, C code holds it.
"""

QUEUES_SEEN = frozenset({"asyncio"})
"""The kinds of loops whose ready callbacks can be counted."""


@dataclass(frozen=True, slots=True)
class StatementShare:
    """The part of a stall or step (one run of a callback) that a statement at one call site
    took.
    """

    statement: str
    site: CallSite
    calls: int
    ns: int
    share: float


@dataclass(frozen=True, slots=True)
class StallSummary:
    """The stalls of one function at one line.

    Attributes:
        site: the line that stalled; its frame is None if unknown.
        category: DATABASE, COLLECTION, WAITING, COMPUTING, HOLDING or UNKNOWN.
        share: the share of the loop's total stall time.
        delayed: the number of callbacks and timers that had to wait.
        delay_ns: the sum of these waits. mean_delay_ns: the mean wait; None if nothing waited.
    """

    stall: Stall
    site: CallSite
    category: str
    share: float
    mean_ns: float
    delayed: int
    delay_ns: int
    mean_delay_ns: float | None
    causes: tuple[StatementShare, ...]


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """The steps of one coroutine function or callback. `share` is their part of the loop's busy
    time.
    """

    step: Step
    share: float
    summary: Summary
    causes: tuple[StatementShare, ...]


@dataclass(frozen=True, slots=True)
class LoopSummary:
    """The figures of one event loop.

    Attributes:
        utilization: the share (0 to 1) of the loop's run time in which the loop was busy; None if
            unknown.
        mean_waiting: the mean number of ready callbacks when a step began; None if unknown.
    """

    loop: Loop
    utilization: float | None
    mean_waiting: float | None
    beat_lag: Summary
    timer_lag: Summary
    stalls: tuple[StallSummary, ...]
    functions: tuple[FunctionSummary, ...]


def find_loops(profile: Profile, helpers: frozenset[Function]) -> tuple[LoopSummary, ...]:
    """Return the figures of each loop. The loop with the longest total stall time comes first."""

    def site(path: tuple[Frame, ...]) -> CallSite:
        return call_site(path, helpers)

    def shares(found: Stall | Step, total_ns: int) -> tuple[StatementShare, ...]:
        sums: dict[tuple[str, CallSite], tuple[int, int]] = {}
        for cause in found.causes:
            key = (cause.statement, site(cause.path))
            calls, ns = sums.get(key, (0, 0))
            sums[key] = (calls + cause.calls, ns + cause.ns)
        return tuple(
            StatementShare(statement, place, calls, ns, ns / total_ns if total_ns else 0.0)
            for (statement, place), (calls, ns) in sorted(
                sums.items(), key=lambda item: -item[1][1]
            )
        )

    def summarize_stall(stall: Stall, all_ns: int) -> StallSummary:
        return StallSummary(
            stall=stall,
            site=site(stall.path),
            category=stall_category(stall),
            share=stall.total_ns / all_ns if all_ns else 0.0,
            mean_ns=stall.total_ns / stall.count if stall.count else 0.0,
            delayed=stall.delayed,
            delay_ns=stall.delay_ns,
            mean_delay_ns=stall.delay_ns / stall.delayed if stall.delayed else None,
            causes=shares(stall, stall.total_ns),
        )

    def summarize_loop(loop: Loop) -> LoopSummary:
        stalled_ns = sum(stall.total_ns for stall in loop.stalls)
        return LoopSummary(
            loop=loop,
            utilization=loop.busy_ns / loop.run_ns if loop.has_steps and loop.run_ns else None,
            mean_waiting=(
                loop.waiting / loop.steps if loop.kind in QUEUES_SEEN and loop.steps else None
            ),
            beat_lag=summarize_durations(loop.beat_lag),
            timer_lag=summarize_durations(loop.timer_lag),
            stalls=tuple(
                summarize_stall(stall, stalled_ns)
                for stall in sorted(loop.stalls, key=lambda stall: -stall.total_ns)
            ),
            functions=tuple(
                FunctionSummary(
                    step,
                    step.durations.total_ns / loop.busy_ns if loop.busy_ns else 0.0,
                    summarize_durations(step.durations),
                    shares(step, step.durations.total_ns),
                )
                for step in sorted(loop.functions, key=lambda step: -step.durations.total_ns)
            ),
        )

    findings = [summarize_loop(loop) for loop in profile.loops]
    return tuple(sorted(findings, key=lambda found: -sum(s.stall.total_ns for s in found.stalls)))


def stall_category(stall: Stall) -> str:
    """Return the category of the cause that took more than half of a stall's time. Computing that
    holds the GIL in C code is a separate category.
    """
    if stall.database_ns > MAJORITY * stall.total_ns:
        return DATABASE
    if stall.gc_ns > MAJORITY * stall.total_ns:
        return COLLECTION
    if not stall.cpu_of_ns:
        return UNKNOWN
    if stall.cpu_ns <= MAJORITY * stall.cpu_of_ns:
        return WAITING
    return HOLDING if stall.gil_ns > C_CODE_GIL_WAIT_NS * stall.samples else COMPUTING


def cumulative_shares(distribution: Distribution) -> Iterable[tuple[int, float]]:
    """Yield the empirical distribution function as (ns, share of durations up to that value), in
    ascending order.
    """
    seen, total = 0, max(1, sum(distribution.histogram.values()))
    for bucket in sorted(distribution.histogram):
        seen += distribution.histogram[bucket]
        low, high = bucket_bounds(bucket)
        yield min((low + high - 1) // 2, distribution.max_ns), min(1.0, seen / total)
