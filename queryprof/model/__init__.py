"""The model: a Profile, the plain data that all reports are computed from.

It comes from a trace file (queryprof.collect.reader), and depends on neither files nor reports.
All times are nanoseconds; all instants nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from queryprof.model.collapsed import Collapsed as Collapsed
from queryprof.model.files import FileWork as FileWork
from queryprof.model.files import LockEvent as LockEvent
from queryprof.model.files import LockHold as LockHold
from queryprof.model.files import LockTime as LockTime
from queryprof.model.loops import Cause as Cause
from queryprof.model.loops import Distribution as Distribution
from queryprof.model.loops import Loop as Loop
from queryprof.model.loops import Stall as Stall
from queryprof.model.loops import StallEvent as StallEvent
from queryprof.model.loops import Step as Step
from queryprof.model.places import ENDLESS as ENDLESS
from queryprof.model.places import OTHER_LINE as OTHER_LINE
from queryprof.model.places import CallPath as CallPath
from queryprof.model.places import Frame as Frame
from queryprof.model.places import Thread as Thread
from queryprof.model.sampled import LineTime as LineTime
from queryprof.model.sampled import ParameterSample as ParameterSample
from queryprof.model.schema import Index as Index
from queryprof.model.schema import Schema as Schema
from queryprof.model.spans import SlowSpan as SlowSpan
from queryprof.model.spans import SpanRun as SpanRun

BASELINE_FIGURES = ("executions", "rows", "vm_steps", "full_scan_steps")
"""The numbers that the baseline of a test keeps of each statement."""


@dataclass(frozen=True, slots=True)
class Process:
    """One recorded process."""

    id: int
    pid: int
    parent_pid: int
    host: str
    argv: tuple[str, ...]
    directory: str
    python_version: str
    sqlite_version: str
    queryprof_version: str
    start_unix_ns: int
    end_unix_ns: int
    clean_end: bool
    clock: str
    rows_estimated: bool
    counters_off: str | None
    flush_ns: int
    folded_statements: int
    folded_calls: int
    lost_counters: int
    unasked_plans: int
    read_bytes: int | None
    written_bytes: int | None
    clock_tick_ns: float | None
    files_off: str | None
    unseen_files: int
    unmeasured: tuple[str, ...] | None
    service: str | None = None
    version: str | None = None
    environment: str | None = None
    window_start_unix_ns: int | None = None
    lost_windows: int | None = None
    peak_memory_bytes: int | None = None

    @property
    def recorded_unix_ns(self) -> int:
        """When what is recorded of it begins: with it, or with its first window that is there."""
        return (
            self.start_unix_ns if self.window_start_unix_ns is None else self.window_start_unix_ns
        )

    @property
    def wall_ns(self) -> int:
        """How long it was recorded; 0 where the clock was set back meanwhile."""
        return max(0, self.end_unix_ns - self.recorded_unix_ns)


class Aggregate(NamedTuple):
    """The sums of the calls of one operation, for one statement from one call path.

    A trace may have 100,000: tuples are made four times as fast as frozen dataclasses.

    Attributes:
        total_ns: time in the calls; self_ns: without profiled calls made inside them.
        min_ns, max_ns: the shortest and the longest call.
        execution_max_ns, execution_sum_sq_ns2, histogram: of the executions that the operation
            began, each with the fetches it led to; histogram is bucket -> executions.
        counted: executions for which SQLite's own counters are known, vm_steps to
            automatic_indexes added up over these; page_fetches over the page_fetch_samples for
            which they are.
    """

    statement: str
    path: CallPath
    span: str
    thread: Thread
    operation: str
    count: int  # type: ignore[assignment]  # as in all tables; a tuple's own is not used
    errors: int
    rows: int
    total_ns: int
    self_ns: int
    min_ns: int
    max_ns: int
    execution_max_ns: int
    execution_sum_sq_ns2: float
    counted: int = 0
    vm_steps: int = 0
    full_scan_steps: int = 0
    sorts: int = 0
    automatic_indexes: int = 0
    page_fetches: int = 0
    page_fetch_samples: int = 0
    histogram: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """How often an operation raised an exception of a type."""

    statement: str
    path: CallPath
    operation: str
    exception: str
    count: int


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One of the slowest executions of a statement."""

    statement: str
    path: CallPath
    span: str
    thread: Thread
    operation: str
    started_unix_ns: int
    duration_ns: int
    rows: int
    stack: CallPath
    sql: str | None
    parameters: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """How SQLite runs a statement on a database, by EXPLAIN QUERY PLAN.

    Attributes:
        database: its file; ":memory:" when it has none.
        tree: a line for each step, two spaces deeper than the step that it is part of.
    """

    statement: str
    database: str
    tree: str


@dataclass(frozen=True, slots=True)
class StackSample:
    """A stack, with estimates of the executions and the time that it stands for."""

    statement: str
    stack: CallPath
    executions: int
    ns: int


@dataclass(frozen=True, slots=True)
class Interval:
    """Database work in one interval of the timeline."""

    start_unix_ns: int
    calls: int
    rows: int
    self_ns: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """A statement that one call path executed more than ten times in one span: the sign of a
    query in a loop (N+1).

    Attributes:
        spans: in how many; executions: in all of these together; most: in one of them.
    """

    statement: str
    path: CallPath
    spans: int
    executions: int
    most: int


@dataclass(frozen=True, slots=True)
class Span:
    """The spans of one name that have ended.

    Attributes:
        cpu_ns: CPU time of the `cpu_count` spans for which it is known.
        database_ns: in the driver, spans inside these included, in all threads together.
        durations: wall time; queries: executions a span (numbers, no nanoseconds).
        statuses: how many requests ended with each status.
    """

    name: str
    count: int
    errors: int
    cpu_count: int
    cpu_ns: int
    database_ns: int
    durations: Distribution
    queries: Distribution
    repeats: tuple[Repeat, ...]
    statuses: Mapping[int, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Handoff:
    """Functions that were handed to a thread and called a driver there, by submitter.

    Attributes:
        kind: whose threads: thread pool, anyio, aiosqlite, twisted.
        path: where they were handed over.
        errors: raised an exception; cancelled: never ran, or its end was not waited for.
        queue: waiting for a thread; run: running; handback: waiting for the event loop to take
            the result, where one does; total: from being handed over to the end of that.
    """

    kind: str
    path: CallPath
    span: str
    count: int
    errors: int
    cancelled: int
    queue: Distribution
    run: Distribution
    handback: Distribution
    total: Distribution


@dataclass(frozen=True, slots=True)
class UsageInterval:
    """What a thread used in one interval of its timeline."""

    start_unix_ns: int
    cpu_ns: int
    read_bytes: int
    written_bytes: int


OF_ALL = 0
"""The process of threads that were added up over all processes (see queryprof.trace.collapsed)."""


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """What the threads of one name used, as the system counts it.

    Attributes:
        read_bytes, written_bytes: through read_calls and write_calls, from and to the page cache
            too.
        width_ns: of the intervals.
    """

    thread: Thread
    user_ns: int
    system_ns: int
    voluntary_switches: int
    involuntary_switches: int
    read_bytes: int
    written_bytes: int
    read_calls: int
    write_calls: int
    width_ns: int
    timeline: tuple[UsageInterval, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that a trace holds."""

    processes: tuple[Process, ...]
    aggregates: tuple[Aggregate, ...]
    errors: tuple[ErrorCount, ...] = ()
    exemplars: tuple[Exemplar, ...] = ()
    stack_samples: tuple[StackSample, ...] = ()
    file_work: tuple[FileWork, ...] = ()
    lock_holds: tuple[LockHold, ...] = ()
    lock_events: tuple[LockEvent, ...] = ()
    texts: Mapping[str, int] = field(default_factory=dict, hash=False)
    """By statement: how many different texts it had, at the least; missing: one."""
    parameters: tuple[ParameterSample, ...] = ()
    line_times: tuple[LineTime, ...] = ()
    plans: tuple[Plan, ...] = ()
    timeline_width_ns: int = 0
    timeline: tuple[Interval, ...] = ()
    loops: tuple[Loop, ...] = ()
    spans: tuple[Span, ...] = ()
    slow_spans: tuple[SlowSpan, ...] = ()
    """By name, the slowest first."""
    handoffs: tuple[Handoff, ...] = ()
    thread_usage: tuple[ThreadUsage, ...] = ()
    running: frozenset[tuple[int, int, str]] = frozenset()
    """Id, begin and host of processes that still ran when the trace was read."""
    left_out: tuple[str, ...] = ()
    """Why something of a recording is missing, a line each."""
    notes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """By statement: its label, from a library."""
    systems: Mapping[str, str] = field(default_factory=dict, hash=False)
    """By statement: the database system that it is sent to; missing: it is no SQL, or unknown."""
    sources: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    """By file of the program's own code: hashes (SHA-256) of its content when a recording ended."""
    collapsed: Collapsed | None = field(default=None, hash=False)

    @property
    def more(self) -> Collapsed | None:
        """The processes that are not listed, of a collapsed trace; None: there are none."""
        return self.collapsed if self.collapsed and self.collapsed.count else None

    @property
    def process_count(self) -> int:
        """How many processes there were, with those that are not listed."""
        return len(self.processes) + (self.more.count if self.more else 0)

    @property
    def process_ns(self) -> int:
        """The processes' run times, added up."""
        return sum(one.wall_ns for one in self.processes) + (self.more.wall_ns if self.more else 0)

    @property
    def span_unix_ns(self) -> tuple[int, int]:
        """The start of the first process, and the end of the last; (0, 0): there is none."""
        starts = [one.recorded_unix_ns for one in self.processes]
        ends = [one.end_unix_ns for one in self.processes]
        if self.more:
            starts, ends = [*starts, self.more.start_unix_ns], [*ends, self.more.end_unix_ns]
        return min(starts, default=0), max(ends, default=0)

    def total(self, figure: str) -> int | None:
        """A figure of processes, added up over all; None: it is known of none."""
        known = [getattr(one, figure) for one in self.processes]
        known += [self.more.sums[figure]] if self.more and self.more.sums[figure] else []
        known = [value for value in known if value is not None]
        return sum(known) if known else None

    @property
    def sqlite_versions(self) -> tuple[str, ...]:
        """The versions of SQLite that its processes used."""
        listed = (part for one in self.processes for part in one.sqlite_version.split(", "))
        return tuple(dict.fromkeys(filter(None, listed)))

    @property
    def databases(self) -> frozenset[str]:
        """The files of all plans and locks (a write may have no plan); ":memory:" for none."""
        plans = {plan.database for plan in self.plans}
        return frozenset(plans | {hold.database for hold in self.lock_holds})
