"""Tables on spans: their sums, and the slowest spans call by call."""

from __future__ import annotations

from queryprof.trace.declaration import (
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

SPAN_TABLES = (
    Table(
        "span_total",
        "The ended spans of one name, added up.",
        (
            key("span_id"),
            Column("count"),
            Column("errors", "spans that ended with an exception"),
            Column("cpu_count", "spans whose CPU time is known ..."),
            Column("cpu_ns", "... and their total CPU time"),
            Column("database_ns", "in the driver, inner spans and other threads included"),
            Column("total_ns", "wall time"),
            most("max_ns"),
            Column("queries", "execute, executemany, executescript"),
            most("queries_max", "in one span"),
        ),
    ),
    histogram("span_histogram", key("span_id"), text("figure", "duration, queries")),
    Table(
        "span_repeat",
        "Statements that one call path executed more than ten times in one span.",
        (
            key("span_id"),
            *STATEMENT_KEY,
            Column("spans"),
            Column("executions", "in these spans"),
            most("most", "largest number in one span"),
        ),
    ),
    Table(
        "span_status",
        "HTTP status codes of requests.",
        (key("span_id"), key("status", "of HTTP"), Column("count")),
    ),
    Table(
        "span_slowest",
        "The slowest spans of each name: three per process, five in merged traces.",
        (
            last("span_id"),
            last("thread_id", "thread that began the span"),
            last("started_unix_ns"),
            last("duration_ns"),
            last("database_ns", "in the driver, inner spans and other threads included"),
            last("executions", "execute, executemany, executescript"),
            last("failed", "1: ended with an exception"),
            unknown("status", "of HTTP; NULL: none", "INTEGER"),
            unknown("queue_ns", "minimum time that its functions waited for a thread", "INTEGER"),
            unknown("cpu_ns", "of its thread during the span, if no other span ran", "INTEGER"),
        ),
        has_id=True,
        index=("span_id", "duration_ns"),
        kept=5,
    ),
    Table(
        "span_run",
        "The driver calls of a slowest span, in order. Consecutive calls with the same"
        " statement, call path and thread form one run. Run 64 combines all remaining"
        " calls.",
        (
            key("span_slowest_id"),
            key("position"),
            last("statement_id"),
            last("path_id"),
            last("span_id", "the innermost span around it"),
            last("thread_id"),
            last("operation", sql_type="TEXT"),
            last("start_ns", "start of the first call, since the span began ..."),
            last("end_ns", "... and end of the last, including its fetches; 0: it had not ended"),
            last("executions", "calls without fetches"),
            last("self_ns", "in the driver"),
            last("rows"),
        ),
    ),
)
