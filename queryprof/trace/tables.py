"""The tables of a trace. Each column is declared once, with its meaning and how to merge two rows.

The schema's SQL, the store, the merge and the reader all use these declarations. A row's values are
in the order of its table's columns.
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
    histogram_table,
    key_column,
    last_value_column,
    maximum_column,
    nullable_column,
    text_column,
)
from queryprof.trace.file_tables import FILE_TABLES
from queryprof.trace.loop_tables import DISTRIBUTION, LOOP_TABLES
from queryprof.trace.recent_tables import RECENT_TABLES
from queryprof.trace.span_tables import SPAN_TABLES

HANDOFF_PARTS = ("queue", "run", "handback", "total")
"""The phases of a handoff."""

TABLES = (
    Table(
        "process",
        "One row per recorded process.",
        (
            last_value_column("pid"),
            last_value_column("parent_pid"),
            last_value_column("host", sql_type="TEXT"),
            last_value_column("argv", "JSON list of strings", sql_type="TEXT"),
            last_value_column("directory", "working directory at the start", sql_type="TEXT"),
            last_value_column("python_version", sql_type="TEXT"),
            last_value_column(
                "sqlite_version",
                "SQLite versions of the drivers, separated by commas; '': none",
                "TEXT",
            ),
            last_value_column("queryprof_version", sql_type="TEXT"),
            last_value_column("start_unix_ns"),
            maximum_column("end_unix_ns", "or time of its last activity"),
            last_value_column("clean_end", "1: it ended by itself; 0: killed, or still running"),
            last_value_column("clock", "clock that timed the calls", "TEXT"),
            last_value_column("rows_estimated", "1: times of operation 'next' are estimates"),
            nullable_column("counters_off", "why SQLite's counters are unknown; NULL: they are on"),
            Column("flush_ns", "time for flushes (once a second) and new statements"),
            Column("folded_statements", "executions recorded as '(other)' because memory was full"),
            Column("folded_calls", "calls without a call path because memory was full"),
            Column("lost_counters", "executions without counters because memory was full"),
            Column(
                "unasked_plans",
                "plans not requested for lack of time or memory",
            ),
            nullable_column("read_bytes", "by read calls, without queryprof's own ...", "INTEGER"),
            nullable_column("written_bytes", "... or by write calls", "INTEGER"),
            nullable_column("clock_tick_ns", "tick length of the clock", "REAL"),
            nullable_column(
                "files_off", "why files and locks are unknown; NULL: they are recorded"
            ),
            Column(
                "unseen_files",
                "connections through the program's own VFS; their file operations are unknown",
                LAST,
            ),
            nullable_column(
                "unmeasured", "JSON list of imported database modules that are not measured"
            ),
            nullable_column("service", "service name of the deployment; NULL: not set"),
            nullable_column("version", "of the service"),
            nullable_column("environment", "of the deployment: production, staging, ..."),
            nullable_column(
                "window_start_unix_ns",
                "start of the oldest kept window; NULL: not recorded in windows",
                "INTEGER",
                role=FIRST,
            ),
            nullable_column(
                "lost_windows",
                "removed windows, if only the latest are kept; NULL: not recorded in windows",
                "INTEGER",
            ),
            nullable_column(
                "peak_memory_bytes", "largest resident set; NULL: the process was killed", "INTEGER"
            ),
        ),
        has_id=True,
    ),
    Table(
        "statement",
        "A statement: a SQL text without its literals, comments, white space and case of keywords."
        " Names in parentheses are not SQL: (connect), (close), (other), (unknown).",
        (
            text_column("text"),
            nullable_column("note", "a library's description of the statement", role=FIRST),
            nullable_column(
                "system",
                "kind of the first database that ran it: sqlite, postgresql, duckdb, mysql,"
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
            text_column("function", "qualified name"),
            text_column("file"),
            key_column("line", "0: unknown"),
            text_column("kind", "user, library, standard", FIRST),
            maximum_column("first_line", "of the function; 0: unknown"),
        ),
        has_id=True,
    ),
    Table(
        "stack",
        "A call path (innermost frames of the program's own code) or a whole stack.",
        (text_column("frames", "ids of frames, innermost first, joined by commas"),),
        has_id=True,
    ),
    Table(
        "span", "A name of spans.", (text_column("name", "'': outside of any span"),), has_id=True
    ),
    Table(
        "thread",
        "The threads of one process with the same name.",
        (key_column("process_id"), text_column("name")),
        has_id=True,
    ),
    Table(
        "aggregate",
        "The calls of one operation, for one statement from one call path, added up.",
        (
            *STATEMENT_KEY,
            key_column("span_id"),
            key_column("thread_id"),
            text_column("operation", "execute, fetchone, next, commit, ..."),
            Column("count", "calls"),
            Column("errors", "calls that raised"),
            Column("rows", "fetched or changed"),
            Column("total_ns", "in the calls"),
            Column("self_ns", "total_ns without profiled calls made inside them"),
            Column("min_ns", "shortest call", LEAST),
            maximum_column("max_ns", "longest call"),
            maximum_column(
                "execution_max_ns", "longest execution that the operation began, including fetches"
            ),
            Column(
                "execution_sum_sq_ns2",
                "sum of the squared durations of executions, ns^2",
                SUM,
                "REAL",
            ),
            Column("counted", "executions for which SQLite's own counters are known:"),
            Column("vm_steps"),
            Column("full_scan_steps"),
            Column("sorts"),
            Column("automatic_indexes", "rows put into automatic indexes"),
            Column("page_fetches", "summed over page_fetch_samples executions"),
            Column("page_fetch_samples"),
        ),
        has_id=True,
    ),
    histogram_table("histogram", key_column("aggregate_id"), count="executions"),
    Table(
        "error",
        "Calls that raised.",
        (
            *STATEMENT_KEY,
            text_column("operation"),
            text_column("exception", "type"),
            Column("count"),
        ),
    ),
    Table(
        "exemplar",
        "The slowest executions of each statement.",
        (
            last_value_column("statement_id"),
            last_value_column("path_id"),
            last_value_column("span_id"),
            last_value_column("thread_id"),
            last_value_column("operation", sql_type="TEXT"),
            last_value_column("started_unix_ns"),
            last_value_column("duration_ns"),
            last_value_column("rows"),
            nullable_column("stack_id", "NULL: not taken", "INTEGER"),
            nullable_column("sql", "NULL without --parameters"),
            nullable_column("parameters", "NULL without --parameters"),
        ),
        has_id=True,
        index=("statement_id", "duration_ns"),
        kept=5,
    ),
    Table(
        "stack_sample",
        "Whole stacks of all slow executions (10 ms or more) and of 1 in 64 others, weighted by"
        " 64. The number of executions and the time of each stack are estimates.",
        (key_column("statement_id"), key_column("stack_id"), Column("executions"), Column("ns")),
    ),
    Table(
        "timeline",
        "Database work over time. Intervals are aligned to multiples of their width, which is the"
        " same power of two for all rows and is in `setting`.",
        (key_column("start_unix_ns"), Column("calls"), Column("rows"), Column("self_ns")),
        width="timeline_width_ns",
        intervals=512,
    ),
    Table(
        "setting",
        "Values for all rows of a table, or for all processes of a collapsed trace.",
        (
            text_column("name", "timeline_width_ns, usage_width_ns, and the names in collapsed.py"),
            last_value_column("value"),
        ),
    ),
    *LOOP_TABLES,
    Table(
        "plan",
        "SQLite's EXPLAIN QUERY PLAN of a statement on a database, read when the statement"
        " first ran with a schema. One row for each different plan.",
        (
            key_column("statement_id"),
            text_column("database", "its file; ':memory:' without one"),
            text_column("tree", "one line per step, two spaces deeper than its parent step"),
        ),
    ),
    *SPAN_TABLES,
    Table(
        "handoff",
        "Functions handed to other threads that called a driver there.",
        (
            text_column("kind", "owner of the threads: thread pool, anyio, aiosqlite, twisted"),
            key_column("path_id", "call path of the handoff"),
            key_column("span_id"),
            Column("count"),
            Column("errors", "functions that raised"),
            Column("cancelled", "never ran, or nothing waited for its end"),
        ),
        has_id=True,
    ),
    Table(
        "handoff_time",
        "Time of handoffs by phase.",
        (
            key_column("handoff_id"),
            text_column("part", ", ".join(HANDOFF_PARTS)),
            *DISTRIBUTION,
        ),
    ),
    histogram_table("handoff_histogram", key_column("handoff_id"), text_column("part")),
    Table(
        "thread_usage",
        "Resources that the threads of one name used, as counted by the system.",
        (
            key_column("thread_id"),
            Column("user_ns", "CPU time"),
            Column("system_ns"),
            Column("voluntary_switches", "context switches because it waited"),
            Column("involuntary_switches", "context switches because it was preempted"),
            Column("read_bytes", "by read calls, including the page cache ..."),
            Column("written_bytes"),
            Column("read_calls", "... in this number of system calls"),
            Column("write_calls"),
        ),
    ),
    Table(
        "thread_timeline",
        "Thread usage over time. Intervals are aligned to multiples of their width, which is the"
        " same number of seconds for all rows and is in `setting`.",
        (
            key_column("thread_id"),
            key_column("start_unix_ns"),
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
        "Minimum number of different texts of a statement.",
        (key_column("statement_id"), maximum_column("texts", "prepared by one process")),
    ),
    Table(
        "parameter_sample",
        "Patterns in the parameters of a sample of executions.",
        (
            *STATEMENT_KEY,
            Column("samples"),
            Column("repeats", "with the same values as shortly before, and no write in between"),
            Column("offsets", "executions with a known OFFSET at the end of the text"),
            Column("skipped", "sum of these OFFSETs"),
            Column("open_patterns", "executions with a value that begins with a wildcard"),
            Column("slow", "samples of slow executions, whose offsets and patterns do not count"),
        ),
    ),
    Table(
        "line_time",
        "Sampled passes of a program line that executes a statement through a library.",
        (
            *STATEMENT_KEY,
            Column("passes"),
            Column("executions", "executions of the statement in them"),
            Column("others", "executions of other statements in them"),
            Column("ns", "time of these passes"),
            maximum_column("left_out_ns", "duration of the longest ignored pass"),
            Column("loop_rows", "rows of loops that were timed only in part, as far as timed"),
            Column("loop_ns", "time of the line for these rows, without the execution"),
        ),
    ),
    Table(
        "source",
        "A Python file of the program's own code at the end of the recording. Reports show its"
        " lines only if the content still has this hash, because a trace could name any file.",
        (
            text_column("file"),
            text_column("sha256", "of its content, hexadecimal"),
            last_value_column("bytes"),
        ),
    ),
    *RECENT_TABLES,
)
"""Each table comes after the tables it refers to."""

TABLE = {table.name: table for table in TABLES}
