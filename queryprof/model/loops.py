"""Event loops: their steps, stalls and lag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from queryprof.model.places import CallPath, Frame, Thread


@dataclass(frozen=True, slots=True)
class Distribution:
    """Durations: how many, their sum, the longest, and histogram: bucket -> how many."""

    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    histogram: Mapping[int, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Cause:
    """Database time on an event loop: calls of the driver for a statement, from a call path."""

    statement: str
    path: CallPath
    calls: int
    ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """The steps of one coroutine function or callback.

    Attributes:
        function: what ran, at its first line.
        database_ns, gc_ns: of their time, in the driver and in garbage collections.
    """

    function: Frame
    durations: Distribution
    database_ns: int
    gc_ns: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Stall:
    """Steps that took longer than the threshold, of one function, seen at one place.

    Attributes:
        function: what ran, at its first line; without a name when it cannot be seen.
        path: where it was seen; empty when it was never sampled.
        stack: of the longest one, when it was sampled.
        gil_ns: how long it kept the GIL after another thread requested it.
        cpu_ns: how long the thread ran or was ready to run, in `cpu_of_ns` of total_ns (the rest
            was not watched).
        delayed, delay_ns: callbacks and timers that had to wait, and their total wait.
        samples: samples of the stack.
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
        stack: where it was seen; empty: not taken.
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
        has_steps: whether its steps can be seen; else busy_ns and steps are unknown, and 0.
        runs: how often a loop started; run_ns from start to stop, busy_ns of it in steps.
        waiting: callbacks that were ready when a step began, added up over the steps.
        timer_lag: how late the program's timers started; beat_lag: how late the loop was, measured
            ten times a second.
        stall_events: the longest stalls, by their time.
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
