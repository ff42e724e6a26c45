"""Event loops: their steps, stalls and lag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from queryprof.model.places import CallPath, Frame, Thread


@dataclass(frozen=True, slots=True)
class Distribution:
    """Durations: number, sum, longest, and a histogram that maps buckets to numbers."""

    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    histogram: Mapping[int, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Cause:
    """Database time on an event loop: driver calls for a statement, from a call path."""

    statement: str
    path: CallPath
    calls: int
    ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """The steps of one coroutine function or callback.

    Attributes:
        function: the function at its first line.
        database_ns, gc_ns: the part of the time in the driver, and in garbage collections.
    """

    function: Frame
    durations: Distribution
    database_ns: int
    gc_ns: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Stall:
    """Steps of one function that took longer than the threshold, sampled at one place.

    Attributes:
        function: the function at its first line; without a name if unknown.
        path: call path of the samples; empty without samples.
        stack: stack of the longest stall, if sampled.
        gil_ns: how long the thread kept the GIL after another thread requested it.
        cpu_ns: how long the thread ran or was ready to run, during the watched `cpu_of_ns`.
        delayed, delay_ns: callbacks and timers that had to wait, and their total wait.
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
    """One stall: see `Stall`.

    Attributes:
        stack: sampled stack; empty if not taken.
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
        has_steps: whether steps are recorded. Otherwise busy_ns and steps are 0.
        runs: how often a loop started.
        run_ns: time from start to stop.
        busy_ns: the part of run_ns in steps.
        waiting: callbacks that were ready when a step began, summed over the steps.
        timer_lag: lateness of the program's timers.
        beat_lag: lateness of the loop, measured ten times a second.
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
