"""Tables on event loops: their lag, steps and stalls."""

from __future__ import annotations

from queryprof.trace.declaration import (
    LONGEST,
    STATEMENT_KEY,
    Column,
    Table,
    histogram_table,
    key_column,
    last_value_column,
    maximum_column,
    nullable_column,
    text_column,
)

CAUSE = (*STATEMENT_KEY, Column("calls"), Column("ns"))
DISTRIBUTION = (Column("count"), Column("total_ns"), maximum_column("max_ns"))

LOOP_TABLES = (
    Table(
        "loop",
        "The event loops of one library in one thread, added up.",
        (
            text_column("kind", "asyncio, uvloop, trio, twisted"),
            key_column("thread_id"),
            maximum_column("has_steps", "0: only the lag is known, not the steps"),
            Column("runs", "how often a loop started"),
            Column("run_ns", "from start to stop, including waiting"),
            Column("busy_ns", "in steps"),
            Column("steps"),
            Column("waiting", "callbacks ready at the beginning of a step, summed over steps"),
            maximum_column("waiting_max"),
        ),
        has_id=True,
    ),
    Table(
        "lag",
        "How late a loop started callbacks that were due.",
        (
            key_column("loop_id"),
            text_column("source", "timer: the program's timers; beat: queryprof's, ten a second"),
            *DISTRIBUTION,
        ),
    ),
    histogram_table("lag_histogram", key_column("loop_id"), text_column("source")),
    Table(
        "step",
        "The steps of one coroutine function or callback.",
        (
            key_column("loop_id"),
            key_column("frame_id", "the function; its first line"),
            *DISTRIBUTION,
            Column("database_ns", "in driver calls on the loop"),
            Column("gc_ns", "in garbage collections"),
        ),
        has_id=True,
    ),
    histogram_table("step_histogram", key_column("step_id")),
    Table(
        "step_cause",
        "Database time of steps, for the first 24 pairs of a step. The rest is only in"
        " database_ns.",
        (key_column("step_id"), *CAUSE),
    ),
    Table(
        "stall",
        "Steps that took longer than the threshold, by function and sampled place.",
        (
            key_column("loop_id"),
            key_column("frame_id", "the function; '' if unknown"),
            key_column("path_id", "the program's frames in the sampled stack"),
            nullable_column(
                "stack_id", "stack of the longest stall; NULL: not taken", "INTEGER", LONGEST
            ),
            Column("count"),
            Column("total_ns"),
            maximum_column("max_ns"),
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
    Table("stall_cause", "Database time of stalls.", (key_column("stall_id"), *CAUSE)),
    Table(
        "stall_event",
        "The longest stalls of each loop, with their times.",
        (
            last_value_column("loop_id"),
            last_value_column("frame_id", "the function, as in stall"),
            last_value_column("path_id"),
            nullable_column("stack_id", "NULL: not taken", "INTEGER"),
            last_value_column("started_unix_ns"),
            last_value_column("duration_ns"),
        ),
        has_id=True,
        index=("loop_id", "duration_ns"),
        kept=64,
    ),
)
