"""The tables of a trace, each column declared once: what it means, and how two rows become one.

The schema's SQL, the store, the merge and the reader all use these. A row's values are in the order
of its table's columns.
"""

from __future__ import annotations

from queryprof.trace.declaration import (
    FIRST,
    LAST,
    LEAST,
    STATEMENT_KEY,
    SUM,
    Column,
    Table,
    histogram,
    key,
    last,
    most,
    text,
    unknown,
)
from queryprof.trace.file_tables import FILE_TABLES
from queryprof.trace.loop_tables import DISTRIBUTION, LOOP_TABLES
from queryprof.trace.span_tables import SPAN_TABLES

HANDOFF_PARTS = ("queue", "run", "handback", "total")
"""Where the time of a handoff goes."""

TABLES = (
    Table(
        "process",
        "One row for each process that was recorded.",
        (
            last("pid"),
            last("parent_pid"),
            last("host", sql_type="TEXT"),
            last("argv", "JSON list of strings", sql_type="TEXT"),
            last("directory", "working directory at the start", sql_type="TEXT"),
            last("python_version", sql_type="TEXT"),
            last("sqlite_version", "of the drivers, with commas between; '': of none", "TEXT"),
            last("queryprof_version", sql_type="TEXT"),
            last("start_unix_ns"),
            most("end_unix_ns", "or when it was last seen to do something"),
            last("clean_end", "1: it ended by itself; 0: killed, or still running"),
            last("clock", "what timed the calls", "TEXT"),
            last("rows_estimated", "1: times of operation 'next' are estimates"),
            unknown("counters_off", "why SQLite's counters are unknown; NULL: they are on"),
            Column("flush_ns", "time that turns (once a second) and new statements took"),
            Column("folded_statements", "executions under '(other)' for want of room"),
            Column("folded_calls", "calls whose call path is unknown for want of room"),
            Column("lost_counters", "executions whose counters are unknown for want of room"),
            Column(
                "unasked_plans",
                "questions for plans left out for want of time or room",
            ),
            unknown("read_bytes", "through calls that read ...", "INTEGER"),
            unknown("written_bytes", "... or write, queryprof's own left out", "INTEGER"),
            unknown("clock_tick_ns", "of what timed the calls", "REAL"),
            unknown("files_off", "why work on files and locks are unknown; NULL: they are on"),
            Column(
                "unseen_files",
                "connections by a VFS of the program's own: what it does is unknown",
                LAST,
            ),
            unknown("unmeasured", "JSON list: imported database modules that are not measured"),
            unknown("service", "what the deployment calls the program; NULL: not set"),
            unknown("version", "of the service"),
            unknown("environment", "of the deployment: production, staging, ..."),
            unknown(
                "window_start_unix_ns",
                "since when it is recorded, where it is in windows; NULL: since start_unix_ns",
                "INTEGER",
                role=FIRST,
            ),
            unknown(
                "lost_windows",
                "windows that were removed, to keep the latest alone; NULL: it is in none",
                "INTEGER",
            ),
            unknown(
                "peak_memory_bytes", "its largest resident set; NULL: it was killed", "INTEGER"
            ),
        ),
        has_id=True,
    ),
    Table(
        "statement",
        "A statement: a SQL text without its literals, comments, white space and case of keywords."
        " Names in parentheses are no SQL: (connect), (close), (other), (unknown).",
        (
            text("text"),
            unknown("note", "what a library reports of it", role=FIRST),
            unknown(
                "system",
                "the first database's that it was sent to: sqlite, postgresql, duckdb, mysql,"
                " oracle.db, other_sql; NULL: a call without a text (commit, connect)",
                role=FIRST,
            ),
        ),
        has_id=True,
    ),
    Table(
        "frame",
        "A place in the program.",
        (
            text("function", "qualified name"),
            text("file"),
            key("line", "0: unknown"),
            text("kind", "user, library, standard", FIRST),
            most("first_line", "of the function; 0: unknown"),
        ),
        has_id=True,
    ),
    Table(
        "stack",
        "A call path (innermost frames of the program's own code) or a whole stack.",
        (text("frames", "ids of frames, innermost first, joined by commas"),),
        has_id=True,
    ),
    Table("span", "A name of spans.", (text("name", "'': outside of any span"),), has_id=True),
    Table(
        "thread",
        "The threads of one name.",
        (key("process_id"), text("name")),
        has_id=True,
    ),
    Table(
        "aggregate",
        "What the calls of one operation, for one statement from one call path, add up to.",
        (
            *STATEMENT_KEY,
            key("span_id"),
            key("thread_id"),
            text("operation", "execute, fetchone, next, commit, ..."),
            Column("count", "calls"),
            Column("errors", "calls that raised"),
            Column("rows", "fetched by, or changed for, the program"),
            Column("total_ns", "in the calls"),
            Column("self_ns", "total_ns without profiled calls made inside"),
            Column("min_ns", "shortest call", LEAST),
            most("max_ns", "longest call"),
            most(
                "execution_max_ns", "of the executions that the operation began, fetches included"
            ),
            Column("execution_sum_sq_ns2", "of these: sum of squared durations, ns^2", SUM, "REAL"),
            Column("counted", "executions for which SQLite's own counters are known:"),
            Column("vm_steps"),
            Column("full_scan_steps"),
            Column("sorts"),
            Column("automatic_indexes", "rows put into automatic indexes"),
            Column("page_fetches", "of the page_fetch_samples executions for which known"),
            Column("page_fetch_samples"),
        ),
        has_id=True,
    ),
    histogram("histogram", key("aggregate_id"), count="executions"),
    Table(
        "error",
        "Calls that raised.",
        (*STATEMENT_KEY, text("operation"), text("exception", "its type"), Column("count")),
    ),
    Table(
        "exemplar",
        "The slowest executions of each statement.",
        (
            last("statement_id"),
            last("path_id"),
            last("span_id"),
            last("thread_id"),
            last("operation", sql_type="TEXT"),
            last("started_unix_ns"),
            last("duration_ns"),
            last("rows"),
            unknown("stack_id", "NULL: not taken", "INTEGER"),
            unknown("sql", "NULL without --parameters"),
            unknown("parameters", "as in the column above"),
        ),
        has_id=True,
        index=("statement_id", "duration_ns"),
        kept=5,
    ),
    Table(
        "stack_sample",
        "Whole stacks, of all slow executions (10 ms and more) and of 1 in 64 others weighted by"
        " 64: estimates of how many executions, and how much time, each stack stands for.",
        (key("statement_id"), key("stack_id"), Column("executions"), Column("ns")),
    ),
    Table(
        "timeline",
        "Database work by the wall clock: intervals aligned to multiples of the width, which is the"
        " same power of two for all rows and stands in `setting`.",
        (key("start_unix_ns"), Column("calls"), Column("rows"), Column("self_ns")),
        width="timeline_width_ns",
        intervals=512,
    ),
    Table(
        "setting",
        "What holds for all rows of a table, or for all processes of a collapsed trace.",
        (
            text("name", "timeline_width_ns, usage_width_ns, and those of collapsed.py"),
            last("value"),
        ),
    ),
    *LOOP_TABLES,
    Table(
        "plan",
        "How SQLite runs a statement on a database, as EXPLAIN QUERY PLAN had it when the statement"
        " was first met with a schema: one row for each different answer.",
        (
            key("statement_id"),
            text("database", "its file; ':memory:' when it has none"),
            text("tree", "a line a step, two spaces deeper than what it is part of"),
        ),
    ),
    *SPAN_TABLES,
    Table(
        "handoff",
        "Functions that were handed to other threads and called a driver there.",
        (
            text("kind", "whose threads: thread pool, anyio, aiosqlite, twisted"),
            key("path_id", "who handed them over"),
            key("span_id"),
            Column("count"),
            Column("errors", "raised something"),
            Column("cancelled", "never ran, or its end was not waited for"),
        ),
        has_id=True,
    ),
    Table(
        "handoff_time",
        "Where the time of a handoff went.",
        (
            key("handoff_id"),
            text("part", ", ".join(HANDOFF_PARTS)),
            *DISTRIBUTION,
        ),
    ),
    histogram("handoff_histogram", key("handoff_id"), text("part")),
    Table(
        "thread_usage",
        "What the threads of one name used, as the system counts it.",
        (
            key("thread_id"),
            Column("user_ns", "CPU time"),
            Column("system_ns"),
            Column("voluntary_switches", "of context: it waited"),
            Column("involuntary_switches", "it was made to wait"),
            Column("read_bytes", "through calls that read, page cache included ..."),
            Column("written_bytes"),
            Column("read_calls", "... in so many system calls"),
            Column("write_calls"),
        ),
    ),
    Table(
        "thread_timeline",
        "The same by the wall clock: intervals aligned to multiples of the width, which is the same"
        " number of seconds for all rows and stands in `setting`.",
        (
            key("thread_id"),
            key("start_unix_ns"),
            Column("cpu_ns"),
            Column("read_bytes"),
            Column("written_bytes"),
        ),
        width="usage_width_ns",
        intervals=128,
    ),
    *FILE_TABLES,
    Table(
        "statement_use",
        "How many different texts a statement had, at the least.",
        (key("statement_id"), most("texts", "that one process prepared")),
    ),
    Table(
        "parameter_sample",
        "What the values given to a sample of executions have shown.",
        (
            *STATEMENT_KEY,
            Column("samples"),
            Column(
                "repeats", "with the values of one shortly before, and nothing written in between"
            ),
            Column("offsets", "with a known OFFSET at the end of the text"),
            Column("skipped", "the sum of these"),
            Column("open_patterns", "with a value that begins with a wildcard"),
        ),
    ),
    Table(
        "line_time",
        "Some passes of the program's line that executes a statement through a library.",
        (
            *STATEMENT_KEY,
            Column("passes"),
            Column("executions", "of the statement in them"),
            Column("others", "executions of other statements in them"),
            Column("ns", "of these passes"),
        ),
    ),
    Table(
        "source",
        "A Python file of the program's own code as it was at the end. Lines of it are shown where"
        " its content is still this: a trace may name any file, and cannot know what is in it.",
        (text("file"), text("sha256", "of its content, hexadecimal"), last("bytes")),
    ),
)
"""In this order a table comes after those that it refers to."""

TABLE = {table.name: table for table in TABLES}
