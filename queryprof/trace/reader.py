"""From a trace file to a Profile. It changes no trace, and says in one line what is wrong."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from queryprof.errors import TraceError
from queryprof.model import (
    Aggregate,
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
from queryprof.trace.checked_rows import CheckedTrace, Ids, reading, refuse_other_objects
from queryprof.trace.convert import Conversion
from queryprof.trace.header import address, is_sqlite
from queryprof.trace.loop_reader import load_loops
from queryprof.trace.recovery import bring_in, open_living, recorded_commands, taken_already
from queryprof.trace.schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION
from queryprof.trace.store import EXEMPLAR_COLUMNS, TraceStore
from queryprof.trace.work_reader import load_handoffs, load_spans, load_usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.trace.identity import Identity
    from queryprof.trace.region import Region

AGGREGATE_COLUMNS = (
    "id", "statement_id", "path_id", "span_id", "thread_id", "operation", "count", "errors",
    "rows", "total_ns", "self_ns", "min_ns", "max_ns", "execution_max_ns", "execution_sum_sq_ns2",
    "counted", "vm_steps", "full_scan_steps", "sorts", "automatic_indexes", "reprepares",
    "page_fetches", "page_fetch_samples",
)  # fmt: skip


@contextmanager
def opened_as_it_is_now(path: str) -> Iterator[CheckedTrace]:
    """A trace that another process may add to, as it is at one moment. Raises TraceError, as `opened`."""
    copy = sqlite3.connect(":memory:")
    try:
        connection = _connect(path)
        try:
            with reading(path, "header"):
                connection.backup(copy)
        finally:
            connection.close()
        copy = _of_present_version(copy, path)
        yield CheckedTrace(copy, path)
    finally:
        copy.close()


@contextmanager
def opened(path: str) -> Iterator[CheckedTrace]:
    """A trace of the present version, open for reading.

    Raises:
        TraceError: there is no such file, it is no trace, damaged, or of a newer version.
    """
    bring_in(path)
    connection = _with_living(path)
    try:
        yield CheckedTrace(connection, path)
    finally:
        connection.close()


def _with_living(path: str) -> sqlite3.Connection:
    """A trace, with what the processes have recorded that still run."""
    while True:
        commands = recorded_commands(path)
        try:
            with ExitStack() as files:
                # In this order: what is taken meanwhile is in both, and never in neither.
                living = open_living(path, files)
                taken = taken_already(path)
                found = _sum_of(living, taken) if living or taken else None
        except TraceError:
            if recorded_commands(path) == commands:
                raise
            continue
        if recorded_commands(path) == commands:
            break
        if found is not None:  # a command has ended meanwhile, and its trace is made
            found.close()
    if found is not None:
        return found
    connection = _connect(path)
    try:
        return _of_present_version(connection, path)
    except BaseException:
        connection.close()
        raise


def _sum_of(living: Mapping[Identity, list[Region]], taken: Iterable[str]) -> sqlite3.Connection:
    """A trace in memory, of each process once."""
    from queryprof.trace.merge import add_opened

    store = TraceStore(":memory:")
    try:
        for path in taken:
            with opened_as_it_is_now(path) as trace:
                add_opened(store, trace)
        known = store.identities()
        for identity, regions in living.items():
            conversion = Conversion(store)
            for region in regions if identity not in known else ():
                conversion.add(region)
    except BaseException:
        store.abandon()
        raise
    return store.connection


def read_profile(path: str) -> Profile:
    """The profile that a trace file holds.

    Raises:
        TraceError: as `opened`.
    """
    with opened(path) as trace:
        return _Loader(trace).profile()


def load_profile(connection: sqlite3.Connection) -> Profile:
    """The profile in an open trace."""
    return _Loader(CheckedTrace(connection, ":memory:")).profile()


def _connect(path: str) -> sqlite3.Connection:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TraceError(f"{path}: cannot be read: is no file")
        if not is_sqlite(path):
            raise TraceError(f"{path}: is no queryprof trace")
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such trace") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise TraceError(f"{path}: cannot be read: {reason}") from error
    # A process that was killed may leave a journal, which SQLite must be free to roll back.
    mode = "rw" if os.path.exists(path + "-journal") and os.access(path, os.W_OK) else "ro"
    with reading(path, "header"):
        connection = sqlite3.connect(address(path, mode), uri=True, timeout=10)
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _of_present_version(connection: sqlite3.Connection, path: str) -> sqlite3.Connection:
    """The connection itself, or one to a copy in memory that was brought up to date."""
    with reading(path, "header"):
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise TraceError(f"{path}: is a SQLite database, but no queryprof trace")
    if version > SCHEMA_VERSION:
        raise TraceError(
            f"{path}: was written by a newer queryprof (trace version {version}, this one reads"
            f" {SCHEMA_VERSION}); upgrade queryprof"
        )
    refuse_other_objects(connection, path)
    if version == SCHEMA_VERSION:
        return connection
    if version not in MIGRATIONS:
        raise TraceError(f"{path}: has trace version {version}, which no queryprof wrote")
    copy = sqlite3.connect(":memory:")
    with reading(path, "schema"):
        connection.backup(copy)
        connection.close()
        for number in range(version, SCHEMA_VERSION):
            copy.executescript(MIGRATIONS[number])
    return copy


class _Loader:
    """Builds the objects of a profile, each statement, frame and path once."""

    def __init__(self, trace: CheckedTrace) -> None:
        self._trace = trace
        self._processes = _processes(trace)
        self._process_ids = Ids(trace, "process", ((p.id, p.id) for p in self._processes))
        self._statements = trace.ids("statement", ("text",), str)
        # One line of source may have given two places: they are the same frame.
        self._frames = trace.ids("frame", ("function", "file", "line", "kind"), Frame)
        self._stacks = trace.stacks(self._frames)
        self._spans = trace.ids("span", ("name",), str)
        self._threads = trace.ids("thread", ("process_id", "name"), self._thread)

    def profile(self) -> Profile:
        trace = self._trace
        columns = ("start_unix_ns", "calls", "rows", "self_ns")
        width_ns, intervals = trace.intervals("timeline", columns, "timeline_width_ns")
        notes = trace.rows("statement", ("text", "note"))
        return Profile(
            processes=self._processes,
            aggregates=tuple(self._aggregates()),
            errors=tuple(self._errors()),
            exemplars=tuple(self._exemplars()),
            stack_samples=tuple(self._stack_samples()),
            plans=tuple(self._plans()),
            timeline_width_ns=width_ns,
            timeline=tuple(Interval(*row) for row in intervals),
            loops=tuple(
                load_loops(trace, self._statements, self._frames, self._stacks, self._threads)
            ),
            spans=tuple(load_spans(trace, self._spans, self._statements, self._stacks)),
            handoffs=tuple(load_handoffs(trace, self._spans, self._stacks)),
            thread_usage=tuple(load_usage(trace, self._threads)),
            notes={text: note for text, note in notes if note is not None},
        )

    def _thread(self, process: int, name: str) -> Thread:
        return Thread(self._process_ids[process], name)

    def _aggregates(self) -> Iterator[Aggregate]:
        histograms: dict[int, dict[int, int]] = {}
        for number, bucket, executions in self._trace.rows(
            "histogram", ("aggregate_id", "bucket", "executions")
        ):
            if executions:
                histograms.setdefault(number, {})[bucket] = executions
        for row in self._trace.rows("aggregate", AGGREGATE_COLUMNS):
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
        for statement, path, *rest in self._trace.rows(
            "error", ("statement_id", "path_id", "operation", "exception", "count")
        ):
            yield ErrorCount(self._statements[statement], self._stacks[path], *rest)

    def _exemplars(self) -> Iterator[Exemplar]:
        rows = self._trace.rows("exemplar", EXEMPLAR_COLUMNS)
        for statement, path, span, thread, *rest in sorted(rows, key=lambda row: -row[6]):
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

    def _stack_samples(self) -> Iterator[StackSample]:
        for statement, stack, *rest in self._trace.rows(
            "stack_sample", ("statement_id", "stack_id", "executions", "ns")
        ):
            yield StackSample(self._statements[statement], self._stacks[stack], *rest)

    def _plans(self) -> Iterator[Plan]:
        for statement, *rest in self._trace.rows("plan", ("statement_id", "database", "tree")):
            yield Plan(self._statements[statement], *rest)


def _processes(trace: CheckedTrace) -> tuple[Process, ...]:
    found = []
    for number, columns in trace.processes():
        columns["argv"] = tuple(json.loads(columns["argv"]))
        if columns["unmeasured"] is not None:
            columns["unmeasured"] = tuple(json.loads(columns["unmeasured"]))
        columns["clean_end"] = bool(columns["clean_end"])
        columns["rows_estimated"] = bool(columns["rows_estimated"])
        found.append(Process(id=number, **columns))
    return tuple(sorted(found, key=lambda process: (process.start_unix_ns, process.id)))
