"""The types of the JSON report, from which its schema is generated.

Times are nanoseconds, instants nanoseconds since 1970, shares 0 to 1; None is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from queryprof import model
from queryprof.analysis import bottlenecks, handoffs, loops, spans, totals
from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.files import Files
from queryprof.analysis.summary import Summary
from queryprof.analysis.views import Row
from queryprof.model import ErrorCount, Interval, LockEvent, LockHold, SlowSpan, UsageInterval
from queryprof.report.json.writing import SHAPES, shape_of

SHAPES[model.Thread] = str

Category = Literal[
    "database", "garbage collection", "waiting", "computing", "C code that holds the GIL", "unknown"
]


@shape_of(model.Frame)
class Frame:
    """A place in the program."""

    function: Annotated[str, "qualified name"]
    file: str
    line: Annotated[int | None, "null: unknown"]
    kind: Literal["user", "library", "standard"]
    first_line: Annotated[int | None, "of the function; null: unknown"]


@shape_of(CallSite)
class Site:
    """The first frame of a call path that is not a database helper."""

    frame: Frame | None
    callers: Annotated[tuple[Frame, ...], "outwards of it, nearest first"]
    helpers: Annotated[tuple[Frame, ...], "database helpers seen through, innermost first"]


@shape_of(totals.Totals)
class Totals:
    """Sums over a group of calls."""

    calls: Annotated[int, "driver calls"]
    executions: Annotated[int, "of them, those that began an execution"]
    errors: Annotated[int, "calls that raised"]
    rows: Annotated[int | None, "fetched by, or changed for, the program; null: some as a table"]
    total_ns: Annotated[int, "in the calls"]
    self_ns: Annotated[int, "total_ns without measured calls made inside them"]
    min_call_ns: int
    max_call_ns: int
    p50_ns: Annotated[int | None, "of whole executions, right to 4%"]
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    mean_ns: Annotated[float | None, "total_ns for each execution"]
    counted_executions: Annotated[int, "executions for which SQLite's counters are known"]
    vm_steps: Annotated[int | None, "over counted_executions; null: unknown"]
    full_scan_steps: int | None
    sorts: int | None
    automatic_indexes: int | None
    page_fetches_per_execution_estimate: Annotated[float | None, "from 1 in 16 executions"]


@shape_of(model.Process)
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
    rows_estimated: Annotated[bool, "true: times of operation next are estimates"]
    counters_off: Annotated[str | None, "why SQLite's counters are unknown; null: they are on"]
    read_bytes: Annotated[int | None, "through calls that read, queryprof's own left out"]
    written_bytes: Annotated[int | None, "through calls that write, queryprof's own left out"]
    peak_memory_bytes: Annotated[int | None, "largest resident set; null: it did not end by itself"]
    clock_tick_ns: Annotated[float | None, "of what timed the calls"]
    files_off: str | None
    unseen_files: Annotated[
        int, "connections by a VFS of the program's own: their work on files is unknown"
    ]
    unmeasured: Annotated[tuple[str, ...] | None, "imported database modules not measured"]
    service: Annotated[str | None, "what the deployment calls the program; null: not set"]
    version: Annotated[str | None, "of the service"]
    environment: Annotated[str | None, "of the deployment"]
    window_start_unix_ns: Annotated[
        int | None, "since when it is recorded, where it is in windows; null: since start_unix_ns"
    ]
    lost_windows: Annotated[int | None, "windows that were removed; null: it is in none"]


@shape_of(bottlenecks.Bottleneck)
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
        "the different query plans of the statement, in a form that does not depend on SQLite's"
        " version; empty: unknown",
    ]
    files: Files | None


@shape_of(model.Exemplar)
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


@shape_of(loops.Share)
class Cause:
    """Database time on the loop."""

    statement: str
    site: Frame | None
    calls: int
    ns: int
    share: Annotated[float, "of the stall's or the function's time"]


@shape_of(model.Stall)
class Stall:
    """Steps of one function that took longer than the threshold, seen at one place."""

    function: Annotated[Frame | None, "what ran; null: it cannot be seen"]
    stack: model.CallPath
    count: int
    total_ns: int
    max_ns: int
    database_ns: int
    gc_ns: int
    gil_ns: Annotated[int, "from another thread's request for the GIL to its release"]
    delayed: Annotated[int, "callbacks and timers that had to wait"]
    delay_ns: Annotated[int, "for so long, added up"]
    samples: Annotated[int, "looks at the stack"]
    causes: tuple[Cause, ...]
    seen_at: Annotated[tuple[Frame, ...], "the program's frames, innermost first"]
    category: Annotated[Category, "what more than half of it was spent on"]
    share: Annotated[float, "of the time of all of the loop's stalls"]
    mean_ns: float
    cpu_share: Annotated[
        float | None, "how long the thread ran or was ready to run, of the time that was watched"
    ]


@shape_of(model.Step)
class Function:
    """The steps of one coroutine function or callback."""

    function: Frame
    durations: Summary
    database_ns: int
    gc_ns: int
    causes: tuple[Cause, ...]
    share: Annotated[float, "of the loop's busy time"]
    total_ns: int


@shape_of(model.Loop)
class Loop:
    """The event loops of one library in one thread."""

    kind: Annotated[str, "asyncio, uvloop, trio or twisted"]
    thread: str
    runs: Annotated[int, "how often a loop started: three times in one asyncio.run()"]
    run_ns: int
    busy_ns: Annotated[int | None, "in steps; null: they cannot be seen"]
    steps: int | None
    waiting_max: int | None
    timer_lag: Summary
    beat_lag: Summary
    functions: tuple[Function, ...]
    stalls: tuple[Stall, ...]
    stall_events: tuple[model.StallEvent, ...]
    utilization: float | None
    waiting_mean: Annotated[float | None, "callbacks that were ready when a step began"]


@shape_of(spans.RepeatSummary)
class Repeat:
    """A statement that one call site executed more than ten times in one span."""

    statement: str
    site: Site
    spans: Annotated[int, "in how many"]
    executions: Annotated[int, "in all of these"]
    most: Annotated[int, "in one of them"]


@dataclass(frozen=True, slots=True)
class Queries:
    """Executions a span."""

    mean: float | None
    p50: int | None
    p95: int | None
    max: int | None


@shape_of(model.Span)
class Span:
    """The spans of one name that have ended."""

    name: str
    count: int
    errors: Annotated[int, "left by an exception"]
    database_ns: Annotated[int, "inner spans and other threads included"]
    queries: Queries
    repeats: Annotated[tuple[Repeat, ...], "queries in loops"]
    statuses: Annotated[Mapping[str, int], "requests by HTTP status"]
    wall: Summary
    cpu_mean_ns: Annotated[float | None, "null: not known of any"]


@shape_of(handoffs.HandoffSummary)
class Handoff:
    """Work that called a driver in a thread to which a call site handed it."""

    kind: Annotated[str, "whose threads: thread pool, anyio, aiosqlite, twisted"]
    site: Site
    count: int
    errors: int
    cancelled: Annotated[int, "never ran, or its end was not waited for"]
    queue: Annotated[Summary, "waiting for a thread"]
    run: Annotated[Summary, "running"]
    handback: Annotated[Summary, "waiting for the event loop to take the result"]
    total: Annotated[Summary, "from being handed over to the end of that"]


@dataclass(frozen=True, slots=True)
class UsageTimeline:
    """What a thread used by the wall clock."""

    width_ns: int
    intervals: tuple[UsageInterval, ...]


@shape_of(model.ThreadUsage)
class Usage:
    """What the threads of one name used, as the system counts it."""

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
    """Database work by the wall clock."""

    width_ns: int
    intervals: tuple[Interval, ...]


@shape_of(model.Plan)
class Plan:
    """How SQLite runs a statement on a database, by EXPLAIN QUERY PLAN."""

    statement: str
    database: Annotated[str, "its file, or :memory:"]
    tree: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """What `queryprof report --format json` writes. Times are nanoseconds, instants nanoseconds
    since 1970, shares 0 to 1; null is unknown, never zero.
    """

    format_version: Literal[2]
    command: tuple[str, ...]
    run_ns: int
    database_ns: Annotated[int, "self time of all calls"]
    database_share: Annotated[float, "of the processes' run times; more than 1 with threads"]
    calls: int
    executions: Annotated[int, "of statements"]
    statements: int
    errors: int
    rows: Annotated[int | None, "null: some were fetched as a table, of unknown length"]
    profiler_ns_estimate: Annotated[
        float, "what queryprof took in the calls; not: in spans, loops, files"
    ]
    cautions: Annotated[tuple[str, ...], "what a reader must know to believe the figures"]
    processes: tuple[Process, ...]
    vital_few: Annotated[int, "how many bottlenecks make up 80% of database_ns"]
    bottlenecks: tuple[Bottleneck, ...]
    views: Annotated[
        Mapping[Literal["statement", "site", "operation", "thread", "span"], tuple[Row, ...]],
        "the same time by each of these",
    ]
    loops: tuple[Loop, ...]
    spans: Annotated[tuple[Span, ...], "by wall time, most first"]
    slowest_spans: Annotated[tuple[SlowSpan, ...], "a few of each name, with their calls in order"]
    handoffs: Annotated[tuple[Handoff, ...], "by total time, most first"]
    threads: Annotated[tuple[Usage, ...], "by CPU time, most first"]
    notes: Annotated[Mapping[str, str], "by statement: what a library reports of it"]
    plans: tuple[Plan, ...]
    error_counts: tuple[ErrorCount, ...]
    exemplars: Annotated[tuple[Exemplar, ...], "the slowest executions of each statement"]
    timeline: Timeline
    lock_holds: Annotated[tuple[LockHold, ...], "write locks, and long read transactions"]
    lock_events: Annotated[tuple[LockEvent, ...], "the longest holds and waits"]
