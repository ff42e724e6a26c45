"""Tables on SQLite's file operations; see tables.py."""

from __future__ import annotations

from queryprof.trace.declaration import (
    LAST,
    SUM,
    Column,
    Table,
    key_column,
    last_value_column,
    maximum_column,
    nullable_column,
    text_column,
)

LOCK = (
    text_column("kind", "write, read, wait"),
    text_column("database", "its file"),
    key_column("statement_id"),
    key_column("path_id"),
    key_column("span_id"),
    key_column("thread_id"),
    key_column("end_statement_id", "of the call that released it"),
    key_column("end_path_id"),
)

FILE_TABLES = (
    Table(
        "file_work",
        "SQLite's file operations in the calls of one operation, for one statement"
        " from one call path. Calls without file operations have no row.",
        (
            key_column("statement_id"),
            key_column("path_id"),
            key_column("span_id"),
            key_column("thread_id"),
            text_column("operation"),
            Column("calls", "that worked on files"),
            Column("lock_waits", "calls that waited for a lock"),
            Column("lock_ns", "waiting for locks"),
            maximum_column("max_lock_ns", "in one call"),
            Column("syncs", "of files and directories"),
            Column("sync_ns"),
            Column("read_bytes"),
            Column("read_ns"),
            Column("written_bytes"),
            Column("write_ns", "writing, creating, truncating and deleting"),
        ),
    ),
    Table(
        "lock_hold",
        "Held locks on database files: write locks, and read transactions of a second or longer.",
        (
            *LOCK,
            Column("count"),
            Column("total_ns"),
            maximum_column("max_ns"),
            Column(
                "database_ns", "time in driver calls of the thread that took the lock, where known"
            ),
            Column("database_of_ns", "hold time for which database_ns is known"),
            nullable_column(
                "changed_rows", "by that thread during the hold; NULL: unknown", "INTEGER", SUM
            ),
            maximum_column("log_bytes", "largest size of the write-ahead log; 0: small or unknown"),
        ),
    ),
    Table(
        "lock_event",
        "The longest holds of locks, and waits for locks, of 1 ms or more.",
        (
            *(last_value_column(column.name, column.meaning, column.sql_type) for column in LOCK),
            last_value_column("start_unix_ns"),
            last_value_column("duration_ns"),
            Column("connection", "the number of its file in its process; 0: unknown", LAST),
            Column("writes", "1: the waiting connection has the write lock", LAST),
        ),
        has_id=True,
        index=("kind", "duration_ns"),
        kept=4096,
    ),
)
