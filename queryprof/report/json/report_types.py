"""The types of the JSON report, from which its schema is generated.

Times are in nanoseconds, instants in nanoseconds since 1970, shares from 0 to 1. None means
unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from queryprof import model
from queryprof.analysis import bottlenecks, handoffs, loops, spans, totals
from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.files import FileWorkSums
from queryprof.analysis.summary import Summary
from queryprof.analysis.views import ViewRow
from queryprof.model import ErrorCount, Interval, LockEvent, LockHold, SlowSpan, UsageInterval
from queryprof.report.json.writing import SHAPES, document_shape_of

SHAPES[model.Thread] = str

Category = Literal[
    "database", "garbage collection", "waiting", "computing", "C code that holds the GIL", "unknown"
]


@document_shape_of(model.Frame)
class Frame:
    """A place in the program."""

    function: Annotated[str, "qualified name"]
    file: str
    line: Annotated[int | None, "null if unknown"]
    kind: Literal["user", "library", "standard"]
    first_line: Annotated[int | None, "of the function; null if unknown"]


@document_shape_of(CallSite)
class Site:
    """The first frame of a call path that is not a database helper."""

    frame: Frame | None
    callers: Annotated[tuple[Frame, ...], "frames that called it, nearest first"]
    helpers: Annotated[tuple[Frame, ...], "database helpers below it, innermost first"]


@document_shape_of(totals.Totals)
class Totals:
    """Sums over a group of calls."""

    calls: Annotated[int, "driver calls"]
    executions: Annotated[int, "driver calls that executed a statement"]
    errors: Annotated[int, "calls that raised"]
    rows: Annotated[int | None, "fetched or changed; null if some were fetched as a table"]
    total_ns: Annotated[int, "in the calls"]
    self_ns: Annotated[int, "total_ns minus the time of measured calls that these calls made"]
    min_call_ns: int
    max_call_ns: int
    p50_ns: Annotated[int | None, "of whole executions, accurate to 4%"]
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    mean_ns: Annotated[float | None, "total_ns per execution"]
    counted_executions: Annotated[int, "executions for which SQLite's counters are known"]
    vm_steps: Annotated[int | None, "over counted_executions; null if unknown"]
    full_scan_steps: int | None
    sorts: int | None
    automatic_indexes: int | None
    page_fetches_per_execution_estimate: Annotated[float | None, "from 1 in 16 executions"]


@document_shape_of(model.Process)
class Process:
    """A recorded process."""

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
    clean_end: Annotated[bool, "false: killed, or still running when the trace was read"]
    clock: str
    rows_estimated: Annotated[bool, "true: the times of the operation 'next' are estimates"]
    counters_off: Annotated[str | None, "why SQLite's counters are unknown; null if they are on"]
    read_bytes: Annotated[int | None, "by read calls, without queryprof's own"]
    written_bytes: Annotated[int | None, "by write calls, without queryprof's own"]
    peak_memory_bytes: Annotated[
        int | None, "largest resident set; null if it did not end by itself"
    ]
    clock_tick_ns: Annotated[float | None, "tick length of the clock that timed the calls"]
    files_off: str | None
    unseen_files: Annotated[
        int, "connections through the program's own VFS; their file work is unknown"
    ]
    unmeasured: Annotated[tuple[str, ...] | None, "imported database modules not measured"]
    service: Annotated[str | None, "service name of the deployment; null if not set"]
    version: Annotated[str | None, "of the service"]
    environment: Annotated[str | None, "of the deployment"]
    window_start_unix_ns: Annotated[
        int | None, "start of the oldest kept window; null if not recorded in windows"
    ]
    lost_windows: Annotated[int | None, "removed windows; null if not recorded in windows"]


@document_shape_of(bottlenecks.Bottleneck)
class Bottleneck:
    """One statement from one call site."""

    rank: int
    statement: str
    site: Site
    totals: Totals
    share: Annotated[float, "of database_ns, 0 to 1"]
    cumulative_share: float
    plans: Annotated[
        tuple[tuple[str, ...], ...],
        "the statement's different query plans, in a form that does not depend on SQLite's"
        " version; empty if unknown",
    ]
    files: FileWorkSums | None


@document_shape_of(model.Exemplar)
class Exemplar:
    """One of the slowest executions of a statement."""

    statement: str
    span: str | None
    thread: str
    operation: str
    started_unix_ns: int
    duration_ns: int
    rows: int
    stack: model.CallPath
    sql: Annotated[str | None, "null without --parameters"]
    parameters: str | None


@document_shape_of(loops.StatementShare)
class Cause:
    """Database time on the loop."""

    statement: str
    site: Frame | None
    calls: int
    ns: int
    share: Annotated[float, "of the stall's or the function's time"]


@document_shape_of(model.Stall)
class Stall:
    """Stalls of one function at one place. A stall is a step that took longer than the
    threshold.
    """

    function: Annotated[Frame | None, "function that ran; null if unknown"]
    stack: model.CallPath
    count: int
    total_ns: int
    max_ns: int
    database_ns: int
    gc_ns: int
    gil_ns: Annotated[int, "from another thread's request for the GIL to its release"]
    delayed: Annotated[int, "callbacks and timers that had to wait"]
    delay_ns: Annotated[int, "total time they waited"]
    samples: Annotated[int, "stack samples"]
    causes: tuple[Cause, ...]
    seen_at: Annotated[tuple[Frame, ...], "the program's frames, innermost first"]
    category: Annotated[Category, "activity that took more than half of the time"]
    share: Annotated[float, "fraction of the time of all stalls of the loop"]
    mean_ns: float
    cpu_share: Annotated[
        float | None, "share of the watched time in which the thread ran or was ready to run"
    ]


@document_shape_of(model.Step)
class Function:
    """The steps of one coroutine function or callback."""

    function: Frame
    durations: Summary
    database_ns: int
    gc_ns: int
    causes: tuple[Cause, ...]
    share: Annotated[float, "of the loop's busy time"]
    total_ns: int


@document_shape_of(model.Loop)
class Loop:
    """The event loops of one library in one thread."""

    kind: Annotated[str, "asyncio, uvloop, trio or twisted"]
    thread: str
    runs: Annotated[int, "how often a loop was started; asyncio.run() starts its loop three times"]
    run_ns: int
    busy_ns: Annotated[int | None, "in steps; null if unknown"]
    steps: int | None
    waiting_max: int | None
    timer_lag: Summary
    beat_lag: Summary
    functions: tuple[Function, ...]
    stalls: tuple[Stall, ...]
    stall_events: tuple[model.StallEvent, ...]
    utilization: float | None
    waiting_mean: Annotated[float | None, "callbacks that were ready when a step began"]


@document_shape_of(spans.RepeatSummary)
class Repeat:
    """A statement that one call site executed more than ten times in one span."""

    statement: str
    site: Site
    spans: Annotated[int, "number of spans"]
    executions: Annotated[int, "in all spans together"]
    most: Annotated[int, "largest number in one span"]


@dataclass(frozen=True, slots=True)
class Queries:
    """Executions per span."""

    mean: float | None
    p50: int | None
    p95: int | None
    max: int | None


@document_shape_of(model.Span)
class Span:
    """The ended spans of one name."""

    name: str
    count: int
    errors: Annotated[int, "spans that ended with an exception"]
    database_ns: Annotated[int, "including inner spans and other threads"]
    queries: Queries
    repeats: Annotated[tuple[Repeat, ...], "queries in loops"]
    statuses: Annotated[Mapping[str, int], "requests by HTTP status"]
    wall: Summary
    cpu_mean_ns: Annotated[float | None, "null if unknown"]


@document_shape_of(handoffs.HandoffSummary)
class Handoff:
    """Work that a call site handed to another thread and that called a driver there."""

    kind: Annotated[str, "owner of the threads: thread pool, anyio, aiosqlite, twisted"]
    site: Site
    count: int
    errors: int
    cancelled: Annotated[int, "never ran, or nothing waited for its end"]
    queue: Annotated[Summary, "waiting for a thread"]
    run: Annotated[Summary, "running"]
    handback: Annotated[Summary, "waiting for the event loop to take the result"]
    total: Annotated[Summary, "from the handoff until the result was taken"]


@dataclass(frozen=True, slots=True)
class UsageTimeline:
    """A thread's usage over time."""

    width_ns: int
    intervals: tuple[UsageInterval, ...]


@document_shape_of(model.ThreadUsage)
class Usage:
    """Resources that the threads of one name used, as counted by the system."""

    user_ns: int
    system_ns: int
    voluntary_switches: int
    involuntary_switches: int
    read_bytes: Annotated[int, "page cache included"]
    written_bytes: int
    read_calls: int
    write_calls: int
    timeline: UsageTimeline
    name: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Database work over time."""

    width_ns: int
    intervals: tuple[Interval, ...]


@document_shape_of(model.Plan)
class Plan:
    """SQLite's EXPLAIN QUERY PLAN of a statement on one database."""

    statement: str
    database: Annotated[str, "its file, or :memory:"]
    tree: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The output of `queryprof report --format json`.

    Times are nanoseconds, instants nanoseconds since 1970, shares 0 to 1. null means unknown, never
    zero.
    """

    format_version: Literal[2]
    command: tuple[str, ...]
    run_ns: int
    database_ns: Annotated[int, "self time of all calls"]
    database_share: Annotated[float, "of the processes' run times; can exceed 1 with threads"]
    calls: int
    executions: Annotated[int, "of statements"]
    statements: int
    errors: int
    rows: Annotated[int | None, "null if some were fetched as a table of unknown length"]
    profiler_ns_estimate: Annotated[
        float, "queryprof's own time in the calls, without spans, loops and files"
    ]
    cautions: Annotated[tuple[str, ...], "warnings about the accuracy of the figures"]
    processes: tuple[Process, ...]
    vital_few: Annotated[int, "number of bottlenecks that make up 80% of database_ns"]
    bottlenecks: tuple[Bottleneck, ...]
    views: Annotated[
        Mapping[Literal["statement", "site", "operation", "thread", "span"], tuple[ViewRow, ...]],
        "database time by dimension",
    ]
    loops: tuple[Loop, ...]
    spans: Annotated[tuple[Span, ...], "by wall time, most first"]
    slowest_spans: Annotated[tuple[SlowSpan, ...], "a few per name, with their calls in order"]
    handoffs: Annotated[tuple[Handoff, ...], "by total time, most first"]
    threads: Annotated[tuple[Usage, ...], "by CPU time, most first"]
    notes: Annotated[Mapping[str, str], "a library's description of each statement"]
    plans: tuple[Plan, ...]
    error_counts: tuple[ErrorCount, ...]
    exemplars: Annotated[tuple[Exemplar, ...], "the slowest executions of each statement"]
    timeline: Timeline
    lock_holds: Annotated[tuple[LockHold, ...], "write locks, and long read transactions"]
    lock_events: Annotated[tuple[LockEvent, ...], "the longest holds and waits"]
