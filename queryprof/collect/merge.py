"""Merge traces: add sums, keep extremes, and list all processes."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from queryprof.collect.collapse import SINGLE_EVENT_TABLES, Collapse, add_settings
from queryprof.collect.output_path import is_null_device, refuse_to_replace
from queryprof.collect.recent_calls import NO_CALLS, CallChoice, rows_in_period
from queryprof.errors import TraceError
from queryprof.region.region_files import has_living_region
from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.collapsed import ALL_PROCESSES, collapsed_settings
from queryprof.trace.opening import opened_finished_trace
from queryprof.trace.processes import Identity
from queryprof.trace.ranges import MAX_SUM
from queryprof.trace.recent_tables import RECENT_TABLES
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLES


def merge_traces(
    output: str,
    inputs: Iterable[str],
    progress: Callable[[], None] = lambda: None,
    opened: Callable[[str], AbstractContextManager[CheckedTrace]] = opened_finished_trace,
    collapses: bool = False,
) -> int:
    """Write the sum of the traces `inputs` to `output`, which may be one of them.

    The output is written to a temporary file and renamed, so it is either complete or unchanged. If
    `output` is the null device, the inputs are read and nothing is written.

    Args:
        progress: called after each input.
        opened: opens an input.
        collapses: combine threads of the same name across processes, and list only the first 1,000
            processes. Use this for many traces.

    Returns:
        The number of processes that are in more than one input. They count each time.

    Raises:
        TraceError: an input is not a trace, or the output cannot be written.
    """
    wanted = not is_null_device(output)
    if wanted:
        refuse_to_replace(output)
        if has_living_region(output):
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
            with store.transaction():
                collapse = Collapse(store) if collapses else None
                repeated = _add_inputs(store, inputs, progress, opened, collapse)
                if collapse:
                    store.remove_surplus()
                    collapse.finish()
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
    return repeated


def _add_inputs(
    store: TraceStore,
    inputs: Iterable[str],
    progress: Callable[[], None],
    opened: Callable[[str], AbstractContextManager[CheckedTrace]],
    collapse: Collapse | None,
) -> int:
    sums = MergedSums(store, collapse, calls=NO_CALLS if collapse else CallChoice())
    for path in inputs:
        with opened(path) as source:
            sums.add(source)
        progress()
    return sums.repeated


class MergedSums:
    """Adds traces to a store, one after the other, until the sums become too large."""

    def __init__(
        self, store: TraceStore, collapse: Collapse | None = None, calls: CallChoice = NO_CALLS
    ) -> None:
        self.store = store
        self._calls = calls
        self.known: set[Identity] = set()
        """The processes in the store."""
        self.repeated = 0
        """Number of repeats of processes in later traces. Each repeat is added again."""
        self._collapse = collapse
        self._left = MAX_SUM

    def add(self, source: CheckedTrace) -> None:
        """Add a trace, completely or not at all. Raises TraceError."""
        identities = set(source.rows("process", ("pid", "start_unix_ns", "host")))
        with self.store.transaction():
            add_opened(self.store, source, self._collapse, self._calls)
            if source.largest_sum > self._left:
                raise TraceError(f"{source.path}: its sums are too large to be added to the others")
        self._left -= source.largest_sum
        self.repeated += len(identities & self.known)
        self.known |= identities


def add_opened(
    store: TraceStore,
    source: CheckedTrace,
    collapse: Collapse | None = None,
    calls: CallChoice = NO_CALLS,
) -> None:
    """Add an open trace to a store.

    Args:
        calls: which of the newest calls of each process to add.

    Raises:
        TraceError: the trace is damaged.
    """
    with store.transaction():
        add_settings(store, collapsed_settings(source))
        numbers: dict[str, Mapping[Any, int | None]] = {}
        single: Mapping[Any, int | None] | None = None
        for table in TABLES:
            if table.name == "setting":
                continue  # settings were added above, together with the rows that they describe
            if table in RECENT_TABLES and not calls.limit:
                continue
            known = (
                {**numbers, "thread": single}
                if single and table.name in SINGLE_EVENT_TABLES
                else numbers
            )
            rows = source.resolved_rows(table.name, known)
            if table.name == "recent_call":
                rows = iter(rows_in_period(rows, calls))
            if collapse and table.name == "thread":
                threads, of_single = collapse.add_threads(
                    source, rows, _run_times_ns(source, numbers)
                )
                numbers["thread"] = source.ids("thread", threads.items())
                single = source.ids("thread", of_single.items())
                continue
            if table.name == "stack":
                rows = ((number, ",".join(map(str, frames))) for number, frames in rows)
            if table.width:
                width_ns = source.interval_ns(table.name)
                if width_ns:
                    store.add_intervals(table.name, width_ns, rows)
            elif table.has_id:
                numbers[table.name] = _add_numbered(store, source, table.name, rows)
            else:
                store.add(table.name, rows)


def _run_times_ns(source: CheckedTrace, numbers: Mapping[str, Mapping[Any, Any]]) -> dict[int, int]:
    """Return the run times of a trace's processes, by their new ids."""
    columns = ("id", "start_unix_ns", "end_unix_ns", "window_start_unix_ns")
    rows = source.rows("process", columns)
    return {
        numbers["process"][number]: end - (window or start) for number, start, end, window in rows
    }


def _add_numbered(
    store: TraceStore, source: CheckedTrace, table: str, rows: Iterable[tuple[Any, ...]]
) -> Mapping[Any, int | None]:
    """Add rows that others refer to, and return a mapping from old ids to new ones."""
    old = []

    def without_number() -> Iterator[tuple[Any, ...]]:
        for row in rows:
            old.append(row[0])
            yield row[1:]

    new = store.add(table, without_number())
    others = (ALL_PROCESSES, ALL_PROCESSES) if table == "process" else (None, None)
    return source.ids(table, [(None, None), others, *zip(old, new, strict=True)])


def _remove_directory(path: str) -> None:
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))
    os.rmdir(path)
