"""Open trace files without changing them. Each error is one line."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager

from queryprof.errors import TraceError
from queryprof.given_file import what_is
from queryprof.trace.checked_rows import CheckedTrace, raising_trace_errors, refuse_other_objects
from queryprof.trace.header import is_sqlite, is_trace, read_only_mode, sqlite_uri
from queryprof.trace.schema import APPLICATION_ID, SCHEMA_VERSION

JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""Marks the end of a journal that names another journal, for transactions on several databases."""


@contextmanager
def opened_finished_trace(path: str) -> Iterator[CheckedTrace]:
    """Open a trace to which no process writes any more.

    Raises:
        TraceError: the file is missing, not a trace, damaged, or of another version.
    """
    with closing(checked_version(connect_read_only(path), path)) as connection:
        yield CheckedTrace(connection, path)


@contextmanager
def opened_snapshot(path: str) -> Iterator[CheckedTrace]:
    """Open a snapshot of a trace to which another process may add. Raises TraceError."""
    with closed_on_error(connect_read_only(path)) as connection:
        copy = _copy_to_memory(connection, path)
    with closing(checked_version(copy, path)) as connection:
        yield CheckedTrace(connection, path)


def connect_read_only(path: str) -> sqlite3.Connection:
    """Return a read-only connection to a trace of any version. Raises TraceError."""
    real = os.path.realpath(path)  # SQLite looks for the journal next to the real path
    try:
        found = os.stat(real if path else "")  # the real path of "" is the working directory
        if not stat.S_ISREG(found.st_mode):
            advice = (
                f"; its traces together: queryprof merge ALL.qprof {path}"
                if stat.S_ISDIR(found.st_mode)
                else ""
            )
            raise TraceError(f"{path}: cannot be read: {what_is(found)}{advice}")
        if not is_sqlite(real):
            advice = f"; to record one: queryprof run {path}" if path.endswith(".py") else ""
            raise TraceError(f"{path}: not a queryprof trace{advice}")
        mode = read_only_mode(real)
    except FileNotFoundError:
        raise TraceError(f"{path}: no such trace") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise TraceError(f"{path}: cannot be read: {reason}") from error
    # A process that was killed may leave a journal, which SQLite must be able to roll back. Only a
    # queryprof trace may be rolled back; leave other databases' journals alone.
    is_ours = _has_journal(real) and is_trace(real)
    mode = "rw" if is_ours and os.access(real, os.W_OK) else mode
    with raising_trace_errors(path, "header"):
        connection = sqlite3.connect(sqlite_uri(real, mode), uri=True, timeout=10)
        with closed_on_error(connection):
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _has_journal(path: str) -> bool:
    """Return whether the trace has a journal that SQLite may roll back.

    Raises TraceError if the journal belongs to a transaction on several databases, which never
    include a trace. SQLite would delete the file that the journal names
    (https://www.sqlite.org/fileformat.html#the_rollback_journal).
    """
    journal = path + "-journal"
    if not os.path.isfile(journal) or os.path.islink(journal):
        return False
    try:
        with open(journal, "rb") as file:
            file.seek(-min(len(JOURNAL_MAGIC), os.path.getsize(journal)), os.SEEK_END)
            names_another = file.read() == JOURNAL_MAGIC
    except OSError:
        return False
    if names_another:
        raise TraceError(
            f"{path}: the journal next to the trace names another file, so queryprof did not write"
            " it"
        )
    return True


@contextmanager
def closed_on_error(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Close a connection if the block raises. Otherwise the caller owns the connection."""
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def checked_version(connection: sqlite3.Connection, path: str) -> sqlite3.Connection:
    """Return the connection if its trace has this queryprof's version; otherwise close it.

    Raises:
        TraceError: the file is not a trace, or has another version.
    """
    with closed_on_error(connection):
        with raising_trace_errors(path, "header"):
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise TraceError(f"{path}: a SQLite database, but not a queryprof trace")
        if version != SCHEMA_VERSION:
            raise TraceError(
                f"{path}: has trace version {version}, and this queryprof reads version"
                f" {SCHEMA_VERSION}: read it with the queryprof that recorded it, or record again"
            )
        refuse_other_objects(connection, path)
    return connection


def _copy_to_memory(connection: sqlite3.Connection, path: str) -> sqlite3.Connection:
    """Copy a database into memory, and close its connection."""
    copy = sqlite3.connect(":memory:")
    with closed_on_error(copy), raising_trace_errors(path, "header"):
        connection.backup(copy)
    connection.close()
    return copy
