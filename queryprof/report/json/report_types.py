"""The types of the JSON report, from which report-schema.json is generated.

Times are nanoseconds, instants nanoseconds since 1970, shares 0 to 1; None is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from queryprof import model
from queryprof.analysis import bottlenecks, handoffs, loops, spans, totals
from queryprof.analysis.call_sites import CallSite
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
    line: Annotated[int | None, "null: unknown"]
    first_line: Annotated[int | None, "of the function; null: unknown"]
    kind: Literal["user", "library", "standard"]


@shape_of(CallSite)
class Site:
    """The first frame of a call path that is not a database helper."""

    callers: Annotated[tuple[Frame, ...], "outwards of it, nearest first"]
    helpers: Annotated[tuple[Frame, ...], "database helpers seen through, innermost first"]


@shape_of(
    totals.Totals,
    without=(
        "statement_executions",
        "deviation_ns",
        "counted",
        "vm_steps_sum",
        "full_scan_steps_sum",
        "sorts_sum",
        "automatic_indexes_sum",
        "page_fetches",
    ),
)
class Totals:
    """Sums over a group of calls."""

    calls: Annotated[int, "driver calls"]
    executions: Annotated[int, "of them, those that began an execution"]
    errors: Annotated[int, "calls that raised"]
    rows: Annotated[int, "fetched by, or changed for, the program"]
    total_ns: Annotated[int, "in the calls"]
    self_ns: Annotated[int, "total_ns without measured calls made inside them"]
    mean_ns: Annotated[float | None, "total_ns for each execution"]
    p50_ns: Annotated[int | None, "of whole executions, right to 4%"]
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    min_call_ns: int
    max_call_ns: int
    counted_executions: Annotated[int, "executions for which SQLite's counters are known"]
    vm_steps: Annotated[int | None, "over counted_executions; null: unknown"]
    full_scan_steps: int | None
    sorts: int | None
    automatic_indexes: int | None
    page_fetches_per_execution_estimate: Annotated[float | None, "from 1 in 16 executions"]


@shape_of(
    model.Process,
    without=(
        "id",
        "flushes",
        "flush_ns",
        "folded_statements",
        "folded_calls",
        "lost_counters",
        "unasked_plans",
    ),
)
class Process:
    """A recorded process."""

    clean_end: Annotated[bool, "false: killed, or still running when the trace was read"]
    rows_estimated: Annotated[bool, "true: times of operation next are estimates"]
    counters_off: Annotated[str | None, "why SQLite's counters are unknown; null: they are on"]
    call_cost_ns: Annotated[float, "of older traces: calibrated cost of one call; else 0"]
    unseen_files: Annotated[
        int, "connections by a VFS of the program's own: their work on files is unknown"
    ]
    read_bytes: Annotated[int | None, "through calls that read, queryprof's own left out"]
    written_bytes: Annotated[int | None, "through calls that write, queryprof's own left out"]
    clock_tick_ns: Annotated[float | None, "of what timed the calls"]
    unmeasured: Annotated[tuple[str, ...] | None, "imported database modules not measured"]


@shape_of(bottlenecks.Bottleneck, without=("callers",))
class Bottleneck:
    """One statement from one call site."""

    share: Annotated[float, "of database_ns, 0 to 1"]
    plans: Annotated[
        tuple[tuple[str, ...], ...],
        "the different query plans of the statement, in a form that does not depend on SQLite's"
        " version; empty: unknown",
    ]


@shape_of(model.Exemplar, without=("path",))
class Exemplar:
    """One of the slowest executions of a statement."""

    span: str | None
    thread: str
    sql: Annotated[str | None, "null unless parameters were asked for"]


@shape_of(loops.Share)
class Cause:
    """Database time on the loop."""

    site: Frame | None
    share: Annotated[float, "of the stall's or the function's time"]


@shape_of(model.Stall, without=("path", "cpu_ns", "cpu_of_ns"))
class Stall:
    """Steps of one function that took longer than the threshold, seen at one place."""

    function: Annotated[Frame | None, "what ran; null: it cannot be seen"]
    seen_at: Annotated[tuple[Frame, ...], "the program's frames, innermost first"]
    category: Annotated[Category, "what more than half of it was spent on"]
    share: Annotated[float, "of the time of all of the loop's stalls"]
    mean_ns: float
    cpu_share: Annotated[
        float | None, "how long the thread ran or was ready to run, of the time that was watched"
    ]
    gil_ns: Annotated[int, "until it let other threads run, when asked to"]
    delayed: Annotated[int, "callbacks and timers that had to wait"]
    delay_ns: Annotated[int, "for so long, added up"]
    samples: Annotated[int, "looks at the stack"]
    causes: tuple[Cause, ...]


@shape_of(model.Step)
class Function:
    """The steps of one coroutine function or callback."""

    share: Annotated[float, "of the loop's busy time"]
    durations: Summary
    total_ns: int
    causes: tuple[Cause, ...]


@shape_of(model.Loop, without=("has_steps", "waiting"))
class Loop:
    """The event loops of one library in one thread."""

    kind: Annotated[str, "asyncio, uvloop, trio or twisted"]
    thread: str
    runs: Annotated[int, "how often a loop started: three times in one asyncio.run()"]
    busy_ns: Annotated[int | None, "in steps; null: they cannot be seen"]
    utilization: float | None
    steps: int | None
    waiting_mean: Annotated[float | None, "callbacks that were ready when a step began"]
    waiting_max: int | None
    beat_lag: Summary
    timer_lag: Summary


@shape_of(spans.RepeatSummary, without=("span",))
class Repeat:
    """A statement that one call site executed more than ten times in one span."""

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


@shape_of(model.Span, without=("cpu_count", "cpu_ns", "durations"))
class Span:
    """The spans of one name that have ended."""

    errors: Annotated[int, "left by an exception"]
    statuses: Annotated[Mapping[str, int], "requests by HTTP status"]
    wall: Summary
    cpu_mean_ns: Annotated[float | None, "null: not known of any"]
    database_ns: Annotated[int, "inner spans and other threads included"]
    queries: Queries
    repeats: Annotated[tuple[Repeat, ...], "queries in loops"]


@shape_of(handoffs.HandoffSummary, without=("program_ns",))
class Handoff:
    """Work that called a driver in a thread to which a call site handed it."""

    kind: Annotated[str, "whose threads: thread pool, anyio, aiosqlite, twisted"]
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


@shape_of(model.ThreadUsage, without=("thread", "width_ns"))
class Usage:
    """What the threads of one name used, as the system counts it."""

    name: str
    read_bytes: Annotated[int, "page cache included"]
    timeline: UsageTimeline


@dataclass(frozen=True, slots=True)
class Timeline:
    """Database work by the wall clock."""

    width_ns: int
    intervals: tuple[Interval, ...]


@shape_of(model.Plan)
class Plan:
    """How SQLite runs a statement on a database, by EXPLAIN QUERY PLAN."""

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
    rows: int
    profiler_ns_estimate: Annotated[
        float, "what queryprof took in the calls; not: in spans, loops, files"
    ]
    cautions: Annotated[tuple[str, ...], "what a reader must know to believe the figures"]
    processes: tuple[Process, ...]
    vital_few: Annotated[int, "how many bottlenecks make up 80% of database_ns"]
    bottlenecks: tuple[Bottleneck, ...]
    views: Annotated[
        Mapping[Literal["statement", "callsite", "operation", "thread", "span"], tuple[Row, ...]],
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
