"""From a trace file to a Profile. It changes no trace, and says in one line what is wrong."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from queryprof.errors import TraceError
from queryprof.model import (
    Aggregate,
    CallPath,
    Counters,
    ErrorCount,
    Exemplar,
    Frame,
    Interval,
    Plan,
    Process,
    Profile,
    StackSample,
    Thread,
)
from queryprof.trace.loop_reader import load_loops
from queryprof.trace.schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION
from queryprof.trace.store import PROCESS_COLUMNS
from queryprof.trace.work_reader import load_handoffs, load_spans, load_usage

MAGIC = b"SQLite format 3\0"


@contextmanager
def opened(path: str) -> Iterator[sqlite3.Connection]:
    """A connection to a trace of the present version, for reading.

    Raises:
        TraceError: there is no such file, it is no trace, damaged, or of a newer version.
    """
    connection = _connect(path)
    try:
        connection = _of_present_version(connection, path)
        yield connection
    except sqlite3.DatabaseError as error:
        raise TraceError(f"{path}: the trace is damaged: {error}") from error
    finally:
        connection.close()


def read_profile(path: str) -> Profile:
    """The profile that a trace file holds.

    Raises:
        TraceError: as `opened`.
    """
    with opened(path) as connection:
        return load_profile(connection)


def read_processes(path: str) -> tuple[Process, ...]:
    """The processes that a trace file is of.

    Raises:
        TraceError: as `opened`.
    """
    with opened(path) as connection:
        return tuple(_processes(connection))


def load_profile(connection: sqlite3.Connection) -> Profile:
    """The profile in an open trace."""
    return _Loader(connection).profile()


def _connect(path: str) -> sqlite3.Connection:
    try:
        with open(path, "rb") as file:
            magic = file.read(len(MAGIC))
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such trace") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if magic != MAGIC:
        raise TraceError(f"{path}: is no queryprof trace")
    # A process that was killed may leave a journal, which SQLite must be free to roll back.
    mode = "rw" if os.path.exists(path + "-journal") and os.access(path, os.W_OK) else "ro"
    address = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(f"{address}?mode={mode}", uri=True, timeout=10)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _of_present_version(connection: sqlite3.Connection, path: str) -> sqlite3.Connection:
    """The connection itself, or one to a copy in memory that was brought up to date."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise TraceError(f"{path}: is a SQLite database, but no queryprof trace")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise TraceError(
            f"{path}: was written by a newer queryprof (trace version {version}, this one reads"
            f" {SCHEMA_VERSION}); upgrade queryprof"
        )
    if version == SCHEMA_VERSION:
        return connection
    copy = sqlite3.connect(":memory:")
    connection.backup(copy)
    connection.close()
    while version < SCHEMA_VERSION:
        if version not in MIGRATIONS:
            raise TraceError(f"{path}: has trace version {version}, which no queryprof wrote")
        copy.executescript(MIGRATIONS[version])
        version += 1
    return copy


class _Loader:
    """Builds the objects of a profile, each statement, frame and path once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._statements = dict(self._rows("SELECT id, text FROM statement"))
        self._frames = {
            number: Frame(*columns)
            for number, *columns in self._rows("SELECT id, function, file, line, kind FROM frame")
        }
        self._stacks: dict[int | None, CallPath] = {None: ()}
        for number, ids in self._rows("SELECT id, frames FROM stack"):
            # One line of source may have given two places: they are the same frame.
            self._stacks[number] = tuple(
                self._frames[int(frame)] for frame in ids.split(",") if frame
            )
        self._spans = dict(self._rows("SELECT id, name FROM span"))
        self._threads = {
            number: Thread(*columns)
            for number, *columns in self._rows("SELECT id, process_id, name FROM thread")
        }

    def profile(self) -> Profile:
        width = self._rows("SELECT value FROM setting WHERE name = 'timeline_width_ns'").fetchone()
        return Profile(
            processes=tuple(_processes(self._connection)),
            aggregates=tuple(self._aggregates()),
            errors=tuple(self._errors()),
            exemplars=tuple(self._exemplars()),
            stack_samples=tuple(
                StackSample(self._statements[statement], self._stacks[stack], executions, ns)
                for statement, stack, executions, ns in self._rows("SELECT * FROM stack_sample")
            ),
            plans=tuple(
                Plan(self._statements[statement], database, tree)
                for statement, database, tree in self._rows("SELECT * FROM plan")
            ),
            timeline_width_ns=width[0] if width else 0,
            timeline=tuple(
                Interval(*row)
                for row in self._rows("SELECT * FROM timeline ORDER BY start_unix_ns")
            ),
            loops=tuple(
                load_loops(
                    self._connection, self._statements, self._frames, self._stacks, self._threads
                )
            ),
            spans=tuple(load_spans(self._connection, self._spans, self._statements, self._stacks)),
            handoffs=tuple(load_handoffs(self._connection, self._spans, self._stacks)),
            thread_usage=tuple(load_usage(self._connection, self._threads)),
            notes=dict(self._rows("SELECT text, note FROM statement WHERE note IS NOT NULL")),
        )

    def _rows(self, sql: str) -> sqlite3.Cursor:
        return self._connection.execute(sql)

    def _aggregates(self) -> Iterator[Aggregate]:
        histograms: dict[int, dict[int, int]] = {}
        for number, bucket, executions in self._rows(
            "SELECT aggregate_id, bucket, executions FROM histogram WHERE executions <> 0"
        ):
            histograms.setdefault(number, {})[bucket] = executions
        for row in self._rows(
            "SELECT id, statement_id, path_id, span_id, thread_id, operation, count, errors, rows,"
            " total_ns, self_ns, min_ns, max_ns, execution_max_ns, execution_sum_sq_ns2,"
            " counted, vm_steps, full_scan_steps, sorts, automatic_indexes, reprepares,"
            " page_fetches, page_fetch_samples FROM aggregate"
        ):
            values: tuple[Any, ...] = (
                self._statements[row[1]],
                self._stacks[row[2]],
                self._spans[row[3]],
                self._threads[row[4]],
                *row[5:15],
                Counters(*row[15:]),
                histograms.get(row[0], {}),
            )
            yield Aggregate(*values)

    def _errors(self) -> Iterator[ErrorCount]:
        for statement, path, *rest in self._rows(
            "SELECT statement_id, path_id, operation, exception, count FROM error"
        ):
            yield ErrorCount(self._statements[statement], self._stacks[path], *rest)

    def _exemplars(self) -> Iterator[Exemplar]:
        for statement, path, span, thread, *rest in self._rows(
            "SELECT statement_id, path_id, span_id, thread_id, operation, started_unix_ns,"
            " duration_ns, rows, stack_id, sql, parameters FROM exemplar"
            " ORDER BY duration_ns DESC, id"
        ):
            values: tuple[Any, ...] = (
                self._statements[statement],
                self._stacks[path],
                self._spans[span],
                self._threads[thread],
                *rest[:4],
                self._stacks[rest[4]],
                *rest[5:],
            )
            yield Exemplar(*values)


def _processes(connection: sqlite3.Connection) -> Iterator[Process]:
    columns = ", ".join(("id", *PROCESS_COLUMNS))
    for row in connection.execute(f"SELECT {columns} FROM process ORDER BY start_unix_ns, id"):
        values = dict(zip(("id", *PROCESS_COLUMNS), row, strict=True))
        values["argv"] = tuple(json.loads(values["argv"]))
        values["clean_end"] = bool(values["clean_end"])
        values["rows_estimated"] = bool(values["rows_estimated"])
        yield Process(**values)
