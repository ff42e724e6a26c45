"""SQLite's file operations: reading, writing, syncing, and locks."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath, Thread


@dataclass(frozen=True, slots=True)
class FileWork:
    """SQLite's file operations in the calls of one operation, for one statement from one call path.

    Attributes:
        calls: calls that worked on files.
        lock_waits: calls that waited for a lock.
        max_lock_ns: longest wait of one call.
        syncs: syncs of files and directories.
        write_ns: time for writing, creating, truncating and deleting.
    """

    statement: str
    path: CallPath
    span: str
    thread: Thread
    operation: str
    calls: int
    lock_waits: int
    lock_ns: int
    max_lock_ns: int
    syncs: int
    sync_ns: int
    read_bytes: int
    read_ns: int
    written_bytes: int
    write_ns: int


@dataclass(frozen=True, slots=True)
class LockHold:
    """Locks on a database file that calls of one statement took and calls of another released.

    Attributes:
        kind: "write", or "read" for a read transaction of one second or longer.
        path: where the locks were taken.
        end_path: where they were released.
        database_ns: time that the thread which took the lock spent in driver calls, during
            `database_of_ns`. The rest of `database_of_ns` is the program's own code.
        changed_rows: rows that this thread changed during the hold; None if unknown.
        log_bytes: largest size of the write-ahead log at the end of a read transaction; 0 if
            unknown.
    """

    kind: str
    database: str
    statement: str
    path: CallPath
    span: str
    thread: Thread
    end_statement: str
    end_path: CallPath
    count: int
    total_ns: int
    max_ns: int
    database_ns: int
    database_of_ns: int
    changed_rows: int | None
    log_bytes: int


@dataclass(frozen=True, slots=True)
class LockTime:
    """The longest wait for a lock, or hold of a lock, of a statement at a call path.

    Attributes:
        kind: "wait" or "hold".
    """

    kind: str
    statement: str
    path: CallPath
    max_ns: int


@dataclass(frozen=True, slots=True)
class LockEvent:
    """A long hold of a lock, or a long wait for a lock.

    Attributes:
        kind: "write", "read" or "wait".
        connection: number of the connection's file in its process; 0 if unknown.
        writes: 1 if the waiting connection has the write lock, so it waits for readers.
    """

    kind: str
    database: str
    statement: str
    path: CallPath
    span: str
    thread: Thread
    end_statement: str
    end_path: CallPath
    start_unix_ns: int
    duration_ns: int
    connection: int = 0
    writes: int = 0
