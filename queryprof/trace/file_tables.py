"""Tables on SQLite's file operations; see tables.py."""

from __future__ import annotations

from queryprof.trace.declaration import LAST, SUM, Column, Table, key, last, most, text, unknown

LOCK = (
    text("kind", "write, read, wait"),
    text("database", "its file"),
    key("statement_id"),
    key("path_id"),
    key("span_id"),
    key("thread_id"),
    key("end_statement_id", "of the call that released it"),
    key("end_path_id"),
)

FILE_TABLES = (
    Table(
        "file_work",
        "SQLite's file operations in the calls of one operation, for one statement"
        " from one call path. Calls without file operations have no row.",
        (
            key("statement_id"),
            key("path_id"),
            key("span_id"),
            key("thread_id"),
            text("operation"),
            Column("calls", "that worked on files"),
            Column("lock_waits", "calls that waited for a lock"),
            Column("lock_ns", "waiting for locks"),
            most("max_lock_ns", "in one call"),
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
            most("max_ns"),
            Column(
                "database_ns", "time in driver calls of the thread that took the lock, where known"
            ),
            Column("database_of_ns", "hold time for which database_ns is known"),
            unknown(
                "changed_rows", "by that thread during the hold; NULL: unknown", "INTEGER", SUM
            ),
            most("log_bytes", "of the write-ahead log at its end; 0: unknown"),
        ),
    ),
    Table(
        "lock_event",
        "The longest holds of locks, and waits for locks, of 1 ms or more.",
        (
            *(last(column.name, column.meaning, column.sql_type) for column in LOCK),
            last("start_unix_ns"),
            last("duration_ns"),
            Column("connection", "the number of its file in its process; 0: unknown", LAST),
            Column("writes", "1: the waiting connection has the write lock", LAST),
        ),
        has_id=True,
        index=("kind", "duration_ns"),
        kept=4096,
    ),
)
