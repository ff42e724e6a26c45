"""The tables of spans: their sums, and the slowest ones call by call."""

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
        "The spans of one name that have ended, added up.",
        (
            key("span_id"),
            Column("count"),
            Column("errors", "left by an exception"),
            Column("cpu_count", "spans whose CPU time is known ..."),
            Column("cpu_ns", "... and that of all these"),
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
            most("most", "in one of them"),
        ),
    ),
    Table(
        "span_status",
        "How requests ended.",
        (key("span_id"), key("status", "of HTTP"), Column("count")),
    ),
    Table(
        "span_slowest",
        "The slowest spans of each name: three of a process, five when traces are merged.",
        (
            last("span_id"),
            last("thread_id", "that began it"),
            last("started_unix_ns"),
            last("duration_ns"),
            last("database_ns", "in the driver, inner spans and other threads included"),
            last("executions", "execute, executemany, executescript"),
            last("failed", "1: left by an exception"),
            unknown("status", "of HTTP; NULL: none", "INTEGER"),
            unknown("queue_ns", "functions of it waited for a thread, at the least", "INTEGER"),
            unknown("cpu_ns", "of its thread while it ran, if it ran alone", "INTEGER"),
        ),
        has_id=True,
        index=("span_id", "duration_ns"),
        kept=5,
    ),
    Table(
        "span_run",
        "The driver calls of such a span, in order: calls that follow each other with one"
        " statement, call path and thread are one run. The last of 64 runs is for all that"
        " followed.",
        (
            key("span_slowest_id"),
            key("position"),
            last("statement_id"),
            last("path_id"),
            last("span_id", "the innermost one around it"),
            last("thread_id"),
            last("operation", sql_type="TEXT"),
            last("start_ns", "of the first call, since the span began ..."),
            last("end_ns", "... and of the last, its fetches included; 0: it had not ended"),
            last("executions", "calls, fetches left out"),
            last("self_ns", "in the driver"),
            last("rows"),
        ),
    ),
)
