"""Adds up traces: sums add, extremes stay extremes, processes stand side by side."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable

from queryprof.errors import TraceError
from queryprof.trace.loop_store import LAG_SUMS, LOOP_SUMS, STALL_SUMS, STEP_SUMS
from queryprof.trace.reader import opened
from queryprof.trace.store import PROCESS_COLUMNS, VALUE_COLUMNS, TraceStore


def merge_traces(
    output: str, inputs: Iterable[str], progress: Callable[[], None] = lambda: None
) -> None:
    """Writes the sum of the traces `inputs` to `output`, which may be one of them.

    The output is written beside its place and renamed, so that it is whole or as it was.

    Args:
        progress: called after each input.

    Raises:
        TraceError: an input is no trace, or the output cannot be written.
    """
    refuse_to_overwrite(output)
    directory = os.path.dirname(os.path.abspath(output))
    try:
        temporary = tempfile.mkdtemp(prefix=".queryprof-", dir=directory)
    except OSError as error:
        raise TraceError(f"{output}: cannot be written: {error.strerror}") from error
    beside = os.path.join(temporary, "merged")
    try:
        store = TraceStore(beside)
        try:
            for path in inputs:
                with opened(path) as source:
                    store.begin()
                    _Addition(source, store).add()
                    store.commit()
                progress()
        finally:
            store.abandon()
        os.replace(beside, output)
    except OSError as error:
        raise TraceError(f"{output}: cannot be written: {error.strerror}") from error
    finally:
        _remove_directory(temporary)


def refuse_to_overwrite(path: str) -> None:
    """Raises TraceError when there is a file at `path` that is anything but a trace."""
    if os.path.exists(path) and os.path.getsize(path):
        try:
            with opened(path):
                pass
        except TraceError as error:
            if "no queryprof trace" in str(error):
                raise TraceError(
                    f"{path}: exists and is no queryprof trace; choose another name"
                ) from None


def _remove_directory(path: str) -> None:
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))
    os.rmdir(path)


class _Addition:
    """One trace on its way into another: numbers of the one become numbers of the other."""

    def __init__(self, source: sqlite3.Connection, store: TraceStore) -> None:
        self._source = source
        self._store = store

    def add(self) -> None:
        processes = {
            number: self._store.add_process(dict(zip(PROCESS_COLUMNS, values, strict=True)))
            for number, *values in self._rows("process", ("id", *PROCESS_COLUMNS))
        }
        self._statements = {
            number: self._store.statement(text, note)
            for number, text, note in self._rows("statement", ("id", "text", "note"))
        }
        self._frames = {
            number: (function, file, line, kind)
            for number, function, file, line, kind in self._rows(
                "frame", ("id", "function", "file", "line", "kind")
            )
        }
        self._stacks: dict[int | None, int | None] = {None: None}
        for number, ids in self._rows("stack", ("id", "frames")):
            self._stacks[number] = self._store.stack(
                self._frames[int(frame)] for frame in ids.split(",") if frame
            )
        self._spans = {n: self._store.span(name) for n, name in self._rows("span", ("id", "name"))}
        self._threads = {
            number: self._store.thread(processes[process], name)
            for number, process, name in self._rows("thread", ("id", "process_id", "name"))
        }
        self._add_aggregates()
        self._add_samples()
        self._add_loops()

    def _add_aggregates(self) -> None:
        histograms: dict[int, list[tuple[int, int]]] = {}
        for number, *pair in self._rows("histogram", ("aggregate_id", "bucket", "executions")):
            histograms.setdefault(number, []).append((pair[0], pair[1]))
        columns = ("id", "statement_id", "path_id", "span_id", "thread_id", "operation")
        for number, statement, path, span, thread, operation, *values in self._rows(
            "aggregate", (*columns, *VALUE_COLUMNS)
        ):
            path_id = self._stacks[path]
            assert path_id is not None  # the column is NOT NULL
            key = (self._statements[statement], path_id, self._spans[span], self._threads[thread])
            self._store.add_aggregate((*key, operation), values, histograms.get(number, []))

    def _add_samples(self) -> None:
        for statement, path, operation, exception, count in self._rows(
            "error", ("statement_id", "path_id", "operation", "exception", "count")
        ):
            path_id = self._stacks[path]
            assert path_id is not None  # the column is NOT NULL
            self._store.add_error(
                (self._statements[statement], path_id, operation, exception), count
            )
        for _, statement, path, span, thread, operation, *rest in self._source.execute(
            "SELECT * FROM exemplar"
        ):
            started, duration, rows, stack, sql, parameters = rest
            self._store.add_exemplar(
                (
                    self._statements[statement], self._stacks[path], self._spans[span],
                    self._threads[thread], operation, started, duration, rows,
                    self._stacks[stack], sql, parameters,
                )
            )  # fmt: skip
        self._store.keep_slowest()
        for statement, database, tree in self._rows("plan", ("statement_id", "database", "tree")):
            self._store.add_plan(self._statements[statement], database, tree)
        for statement, stack, executions, ns in self._source.execute("SELECT * FROM stack_sample"):
            stack_id = self._stacks[stack]
            assert stack_id is not None  # the column is NOT NULL
            self._store.add_stack_sample(self._statements[statement], stack_id, executions, ns)
        width = self._source.execute(
            "SELECT value FROM setting WHERE name = 'timeline_width_ns'"
        ).fetchone()
        if width:
            self._store.add_timeline(width[0], self._source.execute("SELECT * FROM timeline"))

    def _add_loops(self) -> None:
        store = self._store.loops
        frames = {number: self._store.frame(frame) for number, frame in self._frames.items()}
        loops = {
            number: store.add_loop(kind, self._threads[thread], has_steps, sums, waiting_max)
            for number, kind, thread, has_steps, waiting_max, *sums in self._rows(
                "loop", ("id", "kind", "thread_id", "has_steps", "waiting_max", *LOOP_SUMS)
            )
        }
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
                loops[loop], frames[frame], sums, max_ns, buckets[number,], causes[number]
            )
        causes = self._causes("stall")
        for number, loop, frame, path, stack, max_ns, *sums in self._rows(
            "stall", ("id", "loop_id", "frame_id", "path_id", "stack_id", "max_ns", *STALL_SUMS)
        ):
            path_id = self._stacks[path]
            assert path_id is not None  # the column is NOT NULL
            key = (loops[loop], frames[frame], path_id)
            store.add_stall(key, self._stacks[stack], sums, max_ns, causes[number])

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
            path_id = self._stacks[path]
            assert path_id is not None  # the column is NOT NULL
            found[number].append((self._statements[statement], path_id, calls, ns))
        return found

    def _rows(self, table: str, columns: tuple[str, ...]) -> sqlite3.Cursor:
        return self._source.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1")
