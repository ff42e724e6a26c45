"""The tables of event loops: how late they were, what they ran, and what blocked them."""

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
        "The event loops of one library that ran in one thread, added up.",
        (
            text("kind", "asyncio, uvloop, trio, twisted"),
            key("thread_id"),
            most("has_steps", "0: its steps cannot be seen, only how late it is"),
            Column("runs", "how often a loop started"),
            Column("run_ns", "from start to stop, waiting included"),
            Column("busy_ns", "in steps"),
            Column("steps"),
            Column("waiting", "callbacks ready at a step's beginning, sum over steps"),
            most("waiting_max"),
        ),
        has_id=True,
    ),
    Table(
        "lag",
        "How late a loop started what was due.",
        (
            key("loop_id"),
            text("source", "timer: the program's own; beat: queryprof's, ten a second"),
            *DISTRIBUTION,
        ),
    ),
    histogram("lag_histogram", key("loop_id"), text("source")),
    Table(
        "step",
        "What a loop ran: the steps of one coroutine function or callback.",
        (
            key("loop_id"),
            key("frame_id", "the function; its first line"),
            *DISTRIBUTION,
            Column("database_ns", "in calls of the driver, on the loop"),
            Column("gc_ns", "in garbage collections"),
        ),
        has_id=True,
    ),
    histogram("step_histogram", key("step_id")),
    Table(
        "step_cause",
        "The database time of steps: the first 24 pairs of a step; what is missing is in"
        " database_ns.",
        (key("step_id"), *CAUSE),
    ),
    Table(
        "stall",
        "Steps that took longer than the threshold, by what ran and where it was seen meanwhile.",
        (
            key("loop_id"),
            key("frame_id", "what ran; '' when it cannot be seen"),
            key("path_id", "the program's frames, where it was seen"),
            unknown("stack_id", "of the longest one; NULL: not taken", "INTEGER", LONGEST),
            Column("count"),
            Column("total_ns"),
            most("max_ns"),
            Column("database_ns"),
            Column("gc_ns"),
            Column("gil_ns", "from another thread's request for the GIL to its release"),
            Column("cpu_ns", "that the thread ran or was ready to ..."),
            Column("cpu_of_ns", "... in so much of the time (the rest was not watched)"),
            Column("delayed", "callbacks and timers that had to wait"),
            Column("delay_ns", "for so long, added up"),
            Column("samples", "looks at the stack"),
        ),
        has_id=True,
    ),
    Table("stall_cause", "The same of stalls.", (key("stall_id"), *CAUSE)),
    Table(
        "stall_event",
        "The longest stalls of each loop, with their times.",
        (
            last("loop_id"),
            last("frame_id", "as of the stall"),
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
