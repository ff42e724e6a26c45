"""The tables of single calls: the newest calls of each process, and the calls in progress."""

from __future__ import annotations

from queryprof.trace.declaration import (
    STATEMENT_KEY,
    Table,
    key_column,
    maximum_column,
    text_column,
)

RECENT_TABLES = (
    Table(
        "recent_call",
        "The newest calls of each process.",
        (
            key_column("aggregate_id"),
            key_column("start_unix_ns"),
            maximum_column("duration_ns", "of the call and of its fetches"),
            maximum_column("failed", "1: the call raised an exception"),
        ),
    ),
    Table(
        "open_call",
        "Calls in progress when the process was killed, or when a running process was read.",
        (
            *STATEMENT_KEY,
            key_column("span_id"),
            key_column("thread_id"),
            text_column("operation"),
            key_column("start_unix_ns"),
        ),
    ),
)
