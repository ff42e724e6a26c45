"""Tables on event loops: their lag, steps and stalls."""

from __future__ import annotations

from queryprof.trace.declaration import (
    LONGEST,
    STATEMENT_KEY,
    Column,
    Table,
    histogram,
    key,
    last,
    most,
    text,
    unknown,
)

CAUSE = (*STATEMENT_KEY, Column("calls"), Column("ns"))
DISTRIBUTION = (Column("count"), Column("total_ns"), most("max_ns"))

LOOP_TABLES = (
    Table(
        "loop",
        "The event loops of one library in one thread, added up.",
        (
            text("kind", "asyncio, uvloop, trio, twisted"),
            key("thread_id"),
            most("has_steps", "0: only the lag is known, not the steps"),
            Column("runs", "how often a loop started"),
            Column("run_ns", "from start to stop, including waiting"),
            Column("busy_ns", "in steps"),
            Column("steps"),
            Column("waiting", "callbacks ready at the beginning of a step, summed over steps"),
            most("waiting_max"),
        ),
        has_id=True,
    ),
    Table(
        "lag",
        "How late a loop started callbacks that were due.",
        (
            key("loop_id"),
            text("source", "timer: the program's timers; beat: queryprof's, ten a second"),
            *DISTRIBUTION,
        ),
    ),
    histogram("lag_histogram", key("loop_id"), text("source")),
    Table(
        "step",
        "The steps of one coroutine function or callback.",
        (
            key("loop_id"),
            key("frame_id", "the function; its first line"),
            *DISTRIBUTION,
            Column("database_ns", "in driver calls on the loop"),
            Column("gc_ns", "in garbage collections"),
        ),
        has_id=True,
    ),
    histogram("step_histogram", key("step_id")),
    Table(
        "step_cause",
        "Database time of steps, for the first 24 pairs of a step. The rest is only in"
        " database_ns.",
        (key("step_id"), *CAUSE),
    ),
    Table(
        "stall",
        "Steps that took longer than the threshold, by function and sampled place.",
        (
            key("loop_id"),
            key("frame_id", "the function; '' if unknown"),
            key("path_id", "the program's frames in the sampled stack"),
            unknown("stack_id", "stack of the longest stall; NULL: not taken", "INTEGER", LONGEST),
            Column("count"),
            Column("total_ns"),
            most("max_ns"),
            Column("database_ns"),
            Column("gc_ns"),
            Column("gil_ns", "from another thread's request for the GIL to its release"),
            Column("cpu_ns", "time that the thread ran or was ready to run ..."),
            Column("cpu_of_ns", "... during this watched time"),
            Column("delayed", "callbacks and timers that had to wait"),
            Column("delay_ns", "total time they waited"),
            Column("samples", "stack samples"),
        ),
        has_id=True,
    ),
    Table("stall_cause", "Database time of stalls.", (key("stall_id"), *CAUSE)),
    Table(
        "stall_event",
        "The longest stalls of each loop, with their times.",
        (
            last("loop_id"),
            last("frame_id", "the function, as in stall"),
            last("path_id"),
            unknown("stack_id", "NULL: not taken", "INTEGER"),
            last("started_unix_ns"),
            last("duration_ns"),
        ),
        has_id=True,
        index=("loop_id", "duration_ns"),
        kept=64,
    ),
)
