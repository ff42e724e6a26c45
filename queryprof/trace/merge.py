"""Adds up traces: sums add, extremes stay extremes, processes stand side by side."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from queryprof.errors import TraceError
from queryprof.trace.checked_rows import CheckedTrace, Ids
from queryprof.trace.loop_store import LAG_SUMS, LOOP_SUMS, STALL_SUMS, STEP_SUMS
from queryprof.trace.place import is_null, is_written, refuse_to_replace
from queryprof.trace.ranges import LARGEST_SUM
from queryprof.trace.reader import opened
from queryprof.trace.store import EXEMPLAR_COLUMNS, VALUE_COLUMNS, TraceStore
from queryprof.trace.work_store import (
    HANDOFF_SUMS,
    INTERVAL_SUMS,
    SPAN_FIGURES,
    SPAN_MAXIMA,
    SPAN_SUMS,
    USAGE_SUMS,
)


def merge_traces(
    output: str, inputs: Iterable[str], progress: Callable[[], None] = lambda: None
) -> None:
    """Writes the sum of the traces `inputs` to `output`, which may be one of them.

    The output is written beside its place and renamed, so that it is whole or as it was. To the null
    device nothing is written, but all is read.

    Args:
        progress: called after each input.

    Raises:
        TraceError: an input is no trace, or the output cannot be written.
    """
    wanted = not is_null(output)
    if wanted:
        refuse_to_replace(output)
        if is_written(output):
            raise TraceError(f"{output}: a process still writes to it; choose another name")
    directory = os.path.dirname(os.path.abspath(output)) if wanted else None
    try:
        temporary = tempfile.mkdtemp(prefix=".queryprof-", dir=directory)
    except OSError as error:
        raise TraceError(f"{output}: cannot be written: {error.strerror}") from error
    beside = os.path.join(temporary, "merged")
    try:
        store = TraceStore(beside)
        try:
            left = LARGEST_SUM
            for path in inputs:
                left -= add_trace(store, path)
                if left < 0:
                    raise TraceError(f"{path}: its sums are too large to be added to the others")
                progress()
        finally:
            store.abandon()
        if wanted:
            os.replace(beside, output)
    except OSError as error:
        raise TraceError(f"{output}: cannot be written: {error.strerror}") from error
    except sqlite3.Error as error:
        raise TraceError(f"{output}: cannot be written: {error}") from error
    finally:
        _remove_directory(temporary)


def add_trace(store: TraceStore, path: str) -> int:
    """Adds a trace to another, and returns the largest of its sums.

    Raises:
        TraceError: it is none.
    """
    with opened(path) as source:
        add_opened(store, source)
    return source.largest_sum


def add_opened(store: TraceStore, source: CheckedTrace) -> None:
    """Adds an open trace to another. Raises TraceError."""
    with store.transaction():
        _Addition(source, store).add()


def _remove_directory(path: str) -> None:
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))
    os.rmdir(path)


class _Addition:
    """One trace on its way into another: numbers of the one become numbers of the other."""

    def __init__(self, source: CheckedTrace, store: TraceStore) -> None:
        self._source = source
        self._store = store

    def add(self) -> None:
        store, source = self._store, self._source
        processes = Ids(
            source, "process",
            ((number, store.add_process(columns)) for number, columns in source.processes()),
        )  # fmt: skip
        self._statements = source.ids("statement", ("text", "note"), store.statement)
        self._frames = source.ids("frame", ("function", "file", "line", "kind"), _frame_key)
        stacks = source.stacks(self._frames)
        self._stacks: Mapping[int | None, int | None] = Ids(
            source, "stack",
            ((n, None if n is None else store.stack(frames)) for n, frames in stacks.items()),
        )  # fmt: skip
        self._spans = source.ids("span", ("name",), store.span)
        self._threads = source.ids(
            "thread", ("process_id", "name"),
            lambda process, name: store.thread(processes[process], name),
        )  # fmt: skip
        self._add_aggregates()
        self._add_samples()
        self._add_loops()
        self._add_work()

    def _add_aggregates(self) -> None:
        histograms: dict[int, list[tuple[int, int]]] = {}
        for number, *pair in self._rows("histogram", ("aggregate_id", "bucket", "executions")):
            histograms.setdefault(number, []).append((pair[0], pair[1]))
        columns = ("id", "statement_id", "path_id", "span_id", "thread_id", "operation")
        for number, statement, path, span, thread, operation, *values in self._rows(
            "aggregate", (*columns, *VALUE_COLUMNS)
        ):
            key = (
                self._statements[statement], self._path(path), self._spans[span],
                self._threads[thread],
            )  # fmt: skip
            self._store.add_aggregate((*key, operation), values, histograms.get(number, []))

    def _add_samples(self) -> None:
        for statement, path, operation, exception, count in self._rows(
            "error", ("statement_id", "path_id", "operation", "exception", "count")
        ):
            self._store.add_error(
                (self._statements[statement], self._path(path), operation, exception), count
            )
        self._store.add_exemplars(
            [
                (
                    self._statements[statement], self._stacks[path], self._spans[span],
                    self._threads[thread], *figures, self._stacks[stack], sql, parameters,
                )
                for statement, path, span, thread, *figures, stack, sql, parameters in self._rows(
                    "exemplar", EXEMPLAR_COLUMNS
                )
            ]
        )  # fmt: skip
        for statement, database, tree in self._rows("plan", ("statement_id", "database", "tree")):
            self._store.add_plan(self._statements[statement], database, tree)
        for statement, stack, executions, ns in self._rows(
            "stack_sample", ("statement_id", "stack_id", "executions", "ns")
        ):
            self._store.add_stack_sample(
                self._statements[statement], self._path(stack), executions, ns
            )
        columns = ("start_unix_ns", "calls", "rows", "self_ns")
        width_ns, intervals = self._source.intervals("timeline", columns, "timeline_width_ns")
        if intervals:
            self._store.add_timeline(width_ns, intervals)

    def _add_loops(self) -> None:
        store = self._store.loops
        loops = self._source.ids(
            "loop", ("kind", "thread_id", "has_steps", "waiting_max", *LOOP_SUMS),
            lambda kind, thread, has_steps, waiting_max, *sums: store.add_loop(
                kind, self._threads[thread], has_steps, sums, waiting_max
            ),
        )  # fmt: skip
        buckets = self._grouped("lag_histogram", ("loop_id", "source"), ("bucket", "count"))
        for loop, source, max_ns, *sums in self._rows(
            "lag", ("loop_id", "source", "max_ns", *LAG_SUMS)
        ):
            store.add_lag(loops[loop], source, sums, max_ns, buckets[loop, source])
        buckets = self._grouped("step_histogram", ("step_id",), ("bucket", "count"))
        causes = self._causes("step")
        for number, loop, frame, max_ns, *sums in self._rows(
            "step", ("id", "loop_id", "frame_id", "max_ns", *STEP_SUMS)
        ):
            store.add_step(
                loops[loop], self._frame(frame), sums, max_ns, buckets[number,], causes[number]
            )
        causes = self._causes("stall")
        for number, loop, frame, path, stack, max_ns, *sums in self._rows(
            "stall", ("id", "loop_id", "frame_id", "path_id", "stack_id", "max_ns", *STALL_SUMS)
        ):
            key = (loops[loop], self._frame(frame), self._path(path))
            store.add_stall(key, self._stacks[stack], sums, max_ns, causes[number])

    def _add_work(self) -> None:
        store = self._store.work
        buckets = self._grouped("span_histogram", ("span_id", "figure"), ("bucket", "count"))
        for span, *values in self._rows("span_total", ("span_id", *SPAN_SUMS, *SPAN_MAXIMA)):
            sums, maxima = values[: len(SPAN_SUMS)], values[len(SPAN_SUMS) :]
            histograms = {figure: buckets[span, figure] for figure in SPAN_FIGURES}
            store.add_span(self._spans[span], sums, maxima, histograms)
        columns = ("span_id", "statement_id", "path_id", "spans", "executions", "most")
        for span, statement, path, *figures in self._rows("span_repeat", columns):
            key = (self._spans[span], self._statements[statement], self._path(path))
            store.add_repeat(key, *figures)
        for span, status, count in self._rows("span_status", ("span_id", "status", "count")):
            store.add_status(self._spans[span], status, count)
        buckets = self._grouped("handoff_histogram", ("handoff_id", "part"), ("bucket", "count"))
        times: dict[int, dict[str, tuple[int, int, int, list[tuple[int, int]]]]] = defaultdict(dict)
        for number, part, count, total_ns, max_ns in self._rows(
            "handoff_time", ("handoff_id", "part", "count", "total_ns", "max_ns")
        ):
            times[number][part] = (count, total_ns, max_ns, buckets[number, part])
        for number, kind, path, span, *sums in self._rows(
            "handoff", ("id", "kind", "path_id", "span_id", *HANDOFF_SUMS)
        ):
            store.add_handoff((kind, self._path(path), self._spans[span]), sums, times[number])
        for thread, *sums in self._rows("thread_usage", ("thread_id", *USAGE_SUMS)):
            store.add_usage(self._threads[thread], sums)
        width_ns, intervals = self._source.intervals(
            "thread_timeline", ("thread_id", "start_unix_ns", *INTERVAL_SUMS), "usage_width_ns"
        )
        if intervals:
            store.add_intervals(
                width_ns,
                [
                    (self._threads[thread], start_unix_ns, cpu_ns, read, written)
                    for thread, start_unix_ns, cpu_ns, read, written in intervals
                ],
            )

    def _frame(self, number: int) -> int:
        """The other trace's number of a frame."""
        return self._store.frame(self._frames[number])

    def _path(self, number: int) -> int:
        """The other trace's number of a call path that there must be."""
        path = self._stacks[number]
        assert path is not None  # the column is NOT NULL
        return path

    def _grouped(
        self, table: str, key: tuple[str, ...], pair: tuple[str, str]
    ) -> dict[object, list[tuple[int, int]]]:
        found: dict[object, list[tuple[int, int]]] = defaultdict(list)
        for *owner, first, second in self._rows(table, (*key, *pair)):
            found[tuple(owner)].append((first, second))
        return found

    def _causes(self, owner: str) -> dict[int, list[tuple[int, int, int, int]]]:
        found: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        for number, statement, path, calls, ns in self._rows(
            f"{owner}_cause", (f"{owner}_id", "statement_id", "path_id", "calls", "ns")
        ):
            found[number].append((self._statements[statement], self._path(path), calls, ns))
        return found

    def _rows(self, table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        return self._source.rows(table, columns)


def _frame_key(function: str, file: str, line: int, kind: str) -> tuple[str, str, int, str]:
    return function, file, line, kind
