"""SQLite's file operations: reads, writes, syncs and locks."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath, Thread


@dataclass(frozen=True, slots=True)
class FileWork:
    """SQLite's file operations in the calls of one operation, for one statement from one call path.

    Attributes:
        calls: number of calls with file operations.
        lock_waits: number of calls that waited for a lock.
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
    """Holds of locks on a database file, grouped by the statements whose calls took and released
    the lock.

    Attributes:
        kind: "write", or "read" for a read transaction of one second or longer.
        path: the call path that took the locks.
        end_path: the call path that released the locks.
        database_ns: driver time of the thread that took the lock, within the observed
            `database_of_ns`. In the rest of `database_of_ns`, the program's own code ran.
        changed_rows: rows that the thread changed during the hold; None if unknown.
        log_bytes: largest size of the write-ahead log at the end of a read transaction; 0 if
            unknown. For write locks, the largest size that the log reached while readers kept
            SQLite from restarting it for a second or longer; 0 if they did not.
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
    """The longest wait for a lock, or the longest hold, of a statement from one call path.

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
        connection: a number for the connection's file, unique in its process; 0 if unknown.
        writes: 1 if the waiting connection holds the write lock and waits for readers.
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
