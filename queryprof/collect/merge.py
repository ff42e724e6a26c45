"""Adds up traces: sums add, extremes stay extremes, processes stand side by side."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from queryprof.collect.output_path import is_null, refuse_to_replace
from queryprof.errors import TraceError
from queryprof.region.region_files import has_living_region
from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.opening import opened_file
from queryprof.trace.ranges import LARGEST_SUM
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLES


def merge_traces(
    output: str,
    inputs: Iterable[str],
    progress: Callable[[], None] = lambda: None,
    opened: Callable[[str], AbstractContextManager[CheckedTrace]] = opened_file,
) -> None:
    """Writes the sum of the traces `inputs` to `output`, which may be one of them.

    The output is written to a file beside it and renamed, so that it is whole or unchanged. To the
    null device nothing is written, but all inputs are read.

    Args:
        progress: called after each input.
        opened: opens an input.

    Raises:
        TraceError: an input is no trace, or the output cannot be written.
    """
    wanted = not is_null(output)
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
            left = LARGEST_SUM
            for path in inputs:
                with opened(path) as source:
                    add_opened(store, source)
                left -= source.largest_sum
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


def add_opened(store: TraceStore, source: CheckedTrace) -> None:
    """Adds an open trace to another. Raises TraceError."""
    with store.transaction():
        numbers: dict[str, Mapping[Any, int | None]] = {}
        for table in TABLES:
            if table.name == "setting":
                continue  # it is added with the rows that it belongs to
            rows = source.resolved(table.name, numbers)
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


def _add_numbered(
    store: TraceStore, source: CheckedTrace, table: str, rows: Iterable[tuple[Any, ...]]
) -> Mapping[Any, int | None]:
    """Adds rows that others refer to, and returns their new numbers by their old ones."""
    old = []

    def without_number() -> Iterator[tuple[Any, ...]]:
        for row in rows:
            old.append(row[0])
            yield row[1:]

    new = store.add(table, without_number())
    return source.ids(table, [(None, None), *zip(old, new, strict=True)])


def _remove_directory(path: str) -> None:
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))
    os.rmdir(path)
