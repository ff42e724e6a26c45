"""Tables on spans: their sums, and the slowest spans call by call."""

from __future__ import annotations

from queryprof.trace.declaration import (
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

SPAN_TABLES = (
    Table(
        "span_total",
        "The ended spans of one name, added up.",
        (
            key_column("span_id"),
            Column("count"),
            Column("errors", "spans that ended with an exception"),
            Column("cpu_count", "spans whose CPU time is known ..."),
            Column("cpu_ns", "... and their total CPU time"),
            Column("database_ns", "in the driver, inner spans and other threads included"),
            Column("total_ns", "wall time"),
            maximum_column("max_ns"),
            Column("queries", "execute, executemany, executescript"),
            maximum_column("queries_max", "in one span"),
        ),
    ),
    histogram_table(
        "span_histogram", key_column("span_id"), text_column("figure", "duration, queries")
    ),
    Table(
        "span_repeat",
        "Statements that one call path executed more than ten times in one span.",
        (
            key_column("span_id"),
            *STATEMENT_KEY,
            Column("spans"),
            Column("executions", "in these spans"),
            maximum_column("most", "largest number in one span"),
        ),
    ),
    Table(
        "span_status",
        "HTTP status codes of requests.",
        (key_column("span_id"), key_column("status", "of HTTP"), Column("count")),
    ),
    Table(
        "span_slowest",
        "The slowest spans of each name: three per process, five in merged traces.",
        (
            last_value_column("span_id"),
            last_value_column("thread_id", "thread that began the span"),
            last_value_column("started_unix_ns"),
            last_value_column("duration_ns"),
            last_value_column(
                "database_ns", "in the driver, inner spans and other threads included"
            ),
            last_value_column("executions", "execute, executemany, executescript"),
            last_value_column("failed", "1: ended with an exception"),
            nullable_column("status", "of HTTP; NULL: none", "INTEGER"),
            nullable_column(
                "queue_ns", "minimum time that its functions waited for a thread", "INTEGER"
            ),
            nullable_column(
                "cpu_ns", "of its thread during the span, if no other span ran", "INTEGER"
            ),
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
            key_column("span_slowest_id"),
            key_column("position"),
            last_value_column("statement_id"),
            last_value_column("path_id"),
            last_value_column("span_id", "the innermost span around it"),
            last_value_column("thread_id"),
            last_value_column("operation", sql_type="TEXT"),
            last_value_column("start_ns", "start of the first call, since the span began ..."),
            last_value_column(
                "end_ns", "... and end of the last, including its fetches; 0: it had not ended"
            ),
            last_value_column("executions", "calls without fetches"),
            last_value_column("self_ns", "in the driver"),
            last_value_column("rows"),
        ),
    ),
)
