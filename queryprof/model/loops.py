"""Event loops: their steps (single runs of a callback or coroutine), stalls and lag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from queryprof.model.places import CallPath, Frame, Thread


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of durations: count, sum, maximum, and a histogram that maps buckets to
    counts.
    """

    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    histogram: Mapping[int, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Cause:
    """Driver calls of one statement and call path that ran on an event loop, with their time."""

    statement: str
    path: CallPath
    calls: int
    ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """The steps of one coroutine function or callback.

    Attributes:
        function: the function, with its first line.
        database_ns, gc_ns: time of the steps in the driver, and in garbage collections.
    """

    function: Frame
    durations: Distribution
    database_ns: int
    gc_ns: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Stall:
    """Steps of one function that blocked the loop for longer than the threshold, with the same
    sampled call path.

    Attributes:
        function: the function, with its first line; its name is "" if unknown.
        path: the sampled call path; empty without samples.
        stack: stack of the longest stall; empty if not sampled.
        gil_ns: how long the thread kept the GIL after another thread had requested it.
        cpu_ns: how long the thread ran or was ready to run, within the observed `cpu_of_ns`.
        delayed, delay_ns: number of callbacks and timers that had to wait, and their total wait.
        samples: number of stack samples.
    """

    function: Frame
    path: CallPath
    stack: CallPath
    count: int
    total_ns: int
    max_ns: int
    database_ns: int
    gc_ns: int
    gil_ns: int
    cpu_ns: int
    cpu_of_ns: int
    delayed: int
    delay_ns: int
    samples: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class StallEvent:
    """A single stall (see `Stall`).

    Attributes:
        stack: the sampled stack; empty if not sampled.
    """

    function: Frame
    path: CallPath
    stack: CallPath
    started_unix_ns: int
    duration_ns: int


@dataclass(frozen=True, slots=True)
class Loop:
    """The event loops of one library in one thread.

    Attributes:
        has_steps: whether the recorder sees the loop's steps. If not, busy_ns and steps are 0.
        runs: how often a loop started.
        run_ns: total time from start to stop of the loop.
        busy_ns: the part of run_ns in steps.
        waiting: number of callbacks that were ready when a step began, summed over all steps.
        timer_lag: how late the program's timers ran.
        beat_lag: how late queryprof's heartbeats ran, ten times a second.
        stall_events: the longest stalls, by time.
    """

    kind: str
    thread: Thread
    has_steps: bool
    runs: int
    run_ns: int
    busy_ns: int
    steps: int
    waiting: int
    waiting_max: int
    timer_lag: Distribution
    beat_lag: Distribution
    functions: tuple[Step, ...]
    stalls: tuple[Stall, ...]
    stall_events: tuple[StallEvent, ...] = ()
