"""What SQLite does with files: reading, writing, syncing, and locks."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath, Thread


@dataclass(frozen=True, slots=True)
class FileWork:
    """What SQLite had the operating system do in the calls of one operation, for one statement
    from one call path.

    Attributes:
        calls: those that worked on files; lock_waits: of them, those that waited for a lock.
        max_lock_ns: the longest wait of one call.
        syncs: of files and directories.
        write_ns: writing, creating, truncating and deleting.
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
    """Locks on a database's file that calls of one statement took and calls of another released.

    Attributes:
        kind: write, or read: a read transaction of a second and more.
        path: where it was taken; end_path: where it was released.
        database_ns: of `database_of_ns` (the rest is not known), in the driver's calls of the
            thread that took the lock; the program's own code ran in the rest.
        changed_rows: by the thread that took the lock, meanwhile; None: unknown.
        log_bytes: of the write-ahead log at the end of a read transaction, the most; 0: unknown.
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
    """The longest wait for a lock, or hold of one, of a statement at a call path (kind: wait,
    hold).
    """

    kind: str
    statement: str
    path: CallPath
    max_ns: int


@dataclass(frozen=True, slots=True)
class LockEvent:
    """A long hold of a lock, or a long wait for one (kind: write, read, wait).

    Attributes:
        connection: the number of its file in its process; 0: unknown.
        writes: of a wait: 1: its connection has the write lock, and so waits for readers.
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
