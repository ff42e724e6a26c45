"""The model: a Profile, the plain data from which all reports are computed.

A Profile comes from a trace file (queryprof.collect.reader) and depends on neither files nor
reports. Durations (`_ns`) are in nanoseconds, and times (`_unix_ns`) in nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from queryprof.model.collapsed import CollapsedFigures as CollapsedFigures
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
from queryprof.model.recent import RecentCall as RecentCall
from queryprof.model.sampled import LineTime as LineTime
from queryprof.model.sampled import ParameterSample as ParameterSample
from queryprof.model.schema import Index as Index
from queryprof.model.schema import Schema as Schema
from queryprof.model.spans import SlowSpan as SlowSpan
from queryprof.model.spans import SpanRun as SpanRun

BASELINE_FIGURES = ("executions", "rows", "vm_steps", "full_scan_steps")
"""The figures that a test's baseline keeps per statement."""


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
        """Start of the recorded time: the process's start or, if only its latest windows are kept,
        the start of the first window.
        """
        return (
            self.start_unix_ns if self.window_start_unix_ns is None else self.window_start_unix_ns
        )

    @property
    def wall_ns(self) -> int:
        """Length of the recording; 0 if the clock was set back during it."""
        return max(0, self.end_unix_ns - self.recorded_unix_ns)


class Aggregate(NamedTuple):
    """Sums of the calls of one operation, for one statement from one call path.

    A NamedTuple, because a trace may have 100,000 of them: tuples are created four times as fast as
    frozen dataclasses.

    Attributes:
        total_ns: time in the calls, including profiled calls inside them.
        self_ns: total_ns without profiled calls made inside them.
        min_ns, max_ns: the shortest and the longest call.
        execution_max_ns, execution_sum_sq_ns2, histogram: the longest time, sum of squared times
            and distribution of the executions that the operation began, including their fetches.
            The histogram maps buckets to numbers of executions.
        counted: executions for which SQLite's own counters are known. The sums from vm_steps to
            automatic_indexes cover these.
        page_fetches: sum over page_fetch_samples executions.
    """

    statement: str
    path: CallPath
    span: str
    thread: Thread
    operation: str
    count: int  # type: ignore[assignment]  # as in all tables; hides the unused tuple.count
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
    """How often an operation raised exceptions of one type."""

    statement: str
    path: CallPath
    operation: str
    exception: str
    count: int


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One of the slowest executions of a statement. `sql` and `parameters` are None if not
    recorded.
    """

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
    """SQLite's EXPLAIN QUERY PLAN of a statement on a database.

    Attributes:
        database: the database's file; ":memory:" if it has none.
        tree: one line per step, two spaces deeper than its parent step.
    """

    statement: str
    database: str
    tree: str


@dataclass(frozen=True, slots=True)
class StackSample:
    """A sampled stack of a statement, with estimates of the executions and time with this stack."""

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
    """A statement that one call path executed more than ten times in one span.

    This indicates an N+1: a query in a loop.

    Attributes:
        spans: number of spans with the repeat.
        executions: total executions in these spans.
        most: largest number of executions in one span.
    """

    statement: str
    path: CallPath
    spans: int
    executions: int
    most: int


@dataclass(frozen=True, slots=True)
class Span:
    """All finished spans with the same name.

    Attributes:
        cpu_ns: total CPU time of the spans whose CPU time is known; `cpu_count` is their number.
        database_ns: time in the driver, including inner spans and other threads.
        durations: wall times.
        queries: distribution of the number of executions per span. Its `_ns` fields hold counts.
        statuses: number of requests by HTTP status.
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
    """Functions that a call path submitted to another thread, and that called a driver there.

    Attributes:
        kind: owner of the threads: thread pool, anyio, aiosqlite, twisted.
        path: the call path of the handoff.
        errors: functions that raised an exception.
        cancelled: functions that never ran, or whose result was never awaited.
        queue: time until a thread was free.
        run: run time.
        handback: time until the event loop took the result, if there is a loop.
        total: time from submission to the end of the handback.
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
    """A thread's usage in one interval of its timeline."""

    start_unix_ns: int
    cpu_ns: int
    read_bytes: int
    written_bytes: int


ALL_PROCESSES = 0
"""The process id of threads whose figures are sums over all processes (see
queryprof.trace.collapsed).
"""


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """Resources that a process's threads of one name used, according to the system.

    Attributes:
        read_bytes, written_bytes: bytes that read_calls and write_calls transferred, including
            transfers from and to the page cache.
        width_ns: length of an interval of the timeline.
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
    """The content of a trace."""

    processes: tuple[Process, ...]
    aggregates: tuple[Aggregate, ...]
    errors: tuple[ErrorCount, ...] = ()
    exemplars: tuple[Exemplar, ...] = ()
    stack_samples: tuple[StackSample, ...] = ()
    file_work: tuple[FileWork, ...] = ()
    lock_holds: tuple[LockHold, ...] = ()
    lock_events: tuple[LockEvent, ...] = ()
    texts: Mapping[str, int] = field(default_factory=dict, hash=False)
    """The minimum number of different SQL texts of each statement; 1 if missing."""
    parameters: tuple[ParameterSample, ...] = ()
    line_times: tuple[LineTime, ...] = ()
    plans: tuple[Plan, ...] = ()
    timeline_width_ns: int = 0
    timeline: tuple[Interval, ...] = ()
    loops: tuple[Loop, ...] = ()
    spans: tuple[Span, ...] = ()
    slow_spans: tuple[SlowSpan, ...] = ()
    """The slowest spans of each name, slowest first."""
    recent_calls: tuple[RecentCall, ...] = ()
    """The newest calls of each process, sorted by start. Empty if the reader did not load them."""
    handoffs: tuple[Handoff, ...] = ()
    thread_usage: tuple[ThreadUsage, ...] = ()
    running: frozenset[tuple[int, int, str]] = frozenset()
    """The pid, start and host of each process that still ran when the trace was read."""
    left_out: tuple[str, ...] = ()
    """One line for each part of a recording that could not be read, with the reason."""
    notes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The label that a library gave each statement."""
    systems: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The database system of each statement; missing if unknown or not SQL."""
    sources: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    """The SHA-256 hashes of each source file of the program, at the end of a recording."""
    collapsed: CollapsedFigures | None = field(default=None, hash=False)

    @property
    def unlisted(self) -> CollapsedFigures | None:
        """The figures of processes that a collapsed trace does not list; None if all are listed."""
        return self.collapsed if self.collapsed and self.collapsed.count else None

    @property
    def process_count(self) -> int:
        """Number of processes, including unlisted ones."""
        return len(self.processes) + (self.unlisted.count if self.unlisted else 0)

    @property
    def process_ns(self) -> int:
        """Sum of the processes' run times."""
        return sum(one.wall_ns for one in self.processes) + (
            self.unlisted.wall_ns if self.unlisted else 0
        )

    @property
    def span_unix_ns(self) -> tuple[int, int]:
        """Start of the first process and end of the last process; (0, 0) without processes."""
        starts = [one.recorded_unix_ns for one in self.processes]
        ends = [one.end_unix_ns for one in self.processes]
        if self.unlisted:
            starts, ends = (
                [*starts, self.unlisted.start_unix_ns],
                [*ends, self.unlisted.end_unix_ns],
            )
        return min(starts, default=0), max(ends, default=0)

    def total(self, figure: str) -> int | None:
        """Return the sum of a figure over all processes; None if no process has it."""
        known = [getattr(one, figure) for one in self.processes]
        known += (
            [self.unlisted.sums[figure]] if self.unlisted and self.unlisted.sums[figure] else []
        )
        known = [value for value in known if value is not None]
        return sum(known) if known else None

    @property
    def sqlite_versions(self) -> tuple[str, ...]:
        """The versions of SQLite that the processes used."""
        listed = (part for one in self.processes for part in one.sqlite_version.split(", "))
        return tuple(dict.fromkeys(filter(None, listed)))

    @property
    def databases(self) -> frozenset[str]:
        """The databases of all plans and lock holds; ":memory:" without a file. Lock holds are
        included, because writes may have no plan.
        """
        plans = {plan.database for plan in self.plans}
        return frozenset(plans | {hold.database for hold in self.lock_holds})
