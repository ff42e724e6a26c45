"""Event loops: their lag, what caused their stalls, and what other callbacks had to wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from queryprof.analysis.call_sites import CallSite, Function, call_site
from queryprof.analysis.histogram import bucket_bounds
from queryprof.analysis.summary import Summary, summary_of
from queryprof.model import Distribution, Frame, Loop, Profile, Stall, Step

DATABASE = "database"
COLLECTION = "garbage collection"
WAITING = "waiting"
COMPUTING = "computing"
HOLDING = "C code that holds the GIL"
UNKNOWN = "unknown"
"""What a stall was spent on, if one thing was more than half of it."""

MAJORITY = 0.5

HELD_NS = 25_000_000
"""Python code lets another thread run within some switch intervals (sys.getswitchinterval, 5 ms);
a longer wait, on average, is caused by C code."""

QUEUES_SEEN = frozenset({"asyncio"})
"""Kinds of loops whose callbacks that are ready can be counted."""


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a stall or step that went to one statement and call site."""

    statement: str
    site: CallSite
    calls: int
    ns: int
    share: float


@dataclass(frozen=True, slots=True)
class StallSummary:
    """Stalls of one function at one place.

    Attributes:
        site: where they were seen; its frame is None when that is unknown.
        category: DATABASE, COLLECTION, WAITING, COMPUTING, HOLDING or UNKNOWN.
        share: of all time that the loop's stalls took.
        delay_ns: what callbacks and timers had to wait because of them, added up; `delayed` is
            how many had to, and mean_delay_ns (None without any) for how long each.
    """

    stall: Stall
    site: CallSite
    category: str
    share: float
    mean_ns: float
    delayed: int
    delay_ns: int
    mean_delay_ns: float | None
    causes: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """The steps of one coroutine function or callback; `share` of the loop's busy time."""

    step: Step
    share: float
    summary: Summary
    causes: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class LoopSummary:
    """The findings on a loop.

    Attributes:
        utilization: share (0 to 1) of its run time that it was busy; None when it is unknown.
        mean_waiting: callbacks that were ready when a step began; None where that is unknown.
    """

    loop: Loop
    utilization: float | None
    mean_waiting: float | None
    beat_lag: Summary
    timer_lag: Summary
    stalls: tuple[StallSummary, ...]
    functions: tuple[FunctionSummary, ...]


def find_loops(profile: Profile, helpers: frozenset[Function]) -> tuple[LoopSummary, ...]:
    """The findings on each loop, the one with most time in stalls first."""

    def site(path: tuple[Frame, ...]) -> CallSite:
        return call_site(path, helpers)

    def shares(found: Stall | Step, total_ns: int) -> tuple[Share, ...]:
        sums: dict[tuple[str, CallSite], tuple[int, int]] = {}
        for cause in found.causes:
            key = (cause.statement, site(cause.path))
            calls, ns = sums.get(key, (0, 0))
            sums[key] = (calls + cause.calls, ns + cause.ns)
        return tuple(
            Share(statement, place, calls, ns, ns / total_ns if total_ns else 0.0)
            for (statement, place), (calls, ns) in sorted(
                sums.items(), key=lambda item: -item[1][1]
            )
        )

    def stall_finding(stall: Stall, all_ns: int) -> StallSummary:
        return StallSummary(
            stall=stall,
            site=site(stall.path),
            category=category_of(stall),
            share=stall.total_ns / all_ns if all_ns else 0.0,
            mean_ns=stall.total_ns / stall.count if stall.count else 0.0,
            delayed=stall.delayed,
            delay_ns=stall.delay_ns,
            mean_delay_ns=stall.delay_ns / stall.delayed if stall.delayed else None,
            causes=shares(stall, stall.total_ns),
        )

    def loop_finding(loop: Loop) -> LoopSummary:
        stalled_ns = sum(stall.total_ns for stall in loop.stalls)
        return LoopSummary(
            loop=loop,
            utilization=loop.busy_ns / loop.run_ns if loop.has_steps and loop.run_ns else None,
            mean_waiting=(
                loop.waiting / loop.steps if loop.kind in QUEUES_SEEN and loop.steps else None
            ),
            beat_lag=summary_of(loop.beat_lag),
            timer_lag=summary_of(loop.timer_lag),
            stalls=tuple(
                stall_finding(stall, stalled_ns)
                for stall in sorted(loop.stalls, key=lambda stall: -stall.total_ns)
            ),
            functions=tuple(
                FunctionSummary(
                    step,
                    step.durations.total_ns / loop.busy_ns if loop.busy_ns else 0.0,
                    summary_of(step.durations),
                    shares(step, step.durations.total_ns),
                )
                for step in sorted(loop.functions, key=lambda step: -step.durations.total_ns)
            ),
        )

    findings = [loop_finding(loop) for loop in profile.loops]
    return tuple(sorted(findings, key=lambda found: -sum(s.stall.total_ns for s in found.stalls)))


def category_of(stall: Stall) -> str:
    """What more than half of a stall was spent on; of computing, whether in C code."""
    if stall.database_ns > MAJORITY * stall.total_ns:
        return DATABASE
    if stall.gc_ns > MAJORITY * stall.total_ns:
        return COLLECTION
    if not stall.cpu_of_ns:
        return UNKNOWN
    if stall.cpu_ns <= MAJORITY * stall.cpu_of_ns:
        return WAITING
    return HOLDING if stall.gil_ns > HELD_NS * stall.samples else COMPUTING


def cumulative(distribution: Distribution) -> Iterable[tuple[int, float]]:
    """The empirical distribution function: (ns, share of the durations up to there), rising."""
    seen, total = 0, max(1, sum(distribution.histogram.values()))
    for bucket in sorted(distribution.histogram):
        seen += distribution.histogram[bucket]
        low, high = bucket_bounds(bucket)
        yield min((low + high - 1) // 2, distribution.max_ns), min(1.0, seen / total)
