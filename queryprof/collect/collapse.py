"""Combine the threads and processes of many traces, to keep the merged trace small.

Threads with the same name become one, across all processes, and only some processes stay listed.
Settings of the merged trace keep figures that would otherwise be lost:

- of each process: its run time, if it executed something, and its number of threads
- of unlisted processes: their number, when they ran, and their sums
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from queryprof.errors import TraceError
from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.collapsed import ALL_PROCESSES, MORE_PROCESSES, MORE_SUMS
from queryprof.trace.ranges import MAX_SUM
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE

MAX_LISTED = 1000

SINGLE_EVENT_TABLES = ("exemplar", "lock_event", "span_slowest", "span_run")
"""Tables of single executions, holds and spans. They have few rows and keep their process."""

NOTABLE = (
    *("counters_off", "files_off", "unmeasured", "service", "version", "environment"),
    *("sqlite_version", "rows_estimated", "clock"),
)
"""Columns whose values must all stay visible: a process with new values stays listed."""

SETTING_MERGERS = {"more_start_unix_ns": min, "more_end_unix_ns": max, "most_threads": max}
"""Functions that merge a setting of two traces. Other settings are added."""


def add_settings(store: TraceStore, found: Mapping[str, int]) -> None:
    """Add settings to a collapsed trace. Raises TraceError if the sums become too large."""
    known = store.settings()
    joined = {
        name: SETTING_MERGERS.get(name, int.__add__)(known[name], value) if name in known else value
        for name, value in found.items()
        if value > 0
    }
    if max(joined.values(), default=0) > 2 * MAX_SUM:  # instants are larger than the limit for sums
        raise TraceError(f"{store.path}: the processes' times are too large to be added up")
    store.add("setting", list(joined.items()))


def _clock_tick_magnitude(tick_ns: float | None) -> int:
    """Return the magnitude of a clock's tick: the number of binary digits of tick / 10 ns.

    A tick of 10 ns or more is long compared with the time to fetch a row.
    """
    return int(tick_ns / 10).bit_length() if tick_ns else 0


class Collapse:
    """Combine the threads of traces in a store, and finally remove most processes there."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store

    def add_threads(
        self,
        source: CheckedTrace,
        rows: Iterable[tuple[Any, ...]],
        walls_ns: Mapping[int, int],
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Add the threads of a trace.

        Args:
            walls_ns: run times of the trace's processes, by their ids in the store.

        Returns:
            Two mappings from the trace's thread numbers to ids in the store. The first leads to the
            combined thread of each name, the second to the threads of single executions.
        """
        threads = list(rows)
        used = {
            number
            for table in SINGLE_EVENT_TABLES
            for (number,) in source.rows(table, ("thread_id",))
        }
        names = self._store.add("thread", [(ALL_PROCESSES, name) for _, _, name in threads])
        own = [row for row in threads if row[0] in used]
        numbers = self._store.add("thread", [row[1:] for row in own])
        executing = {number for (number,) in source.rows("aggregate", ("thread_id",))}
        processes = Counter(
            process
            for number, process, _ in threads
            if number in executing and process != ALL_PROCESSES
        )
        add_settings(
            self._store,
            {
                "executing_processes": len(processes),
                "executing_wall_ns": sum(walls_ns[process] for process in processes),
                "most_threads": max(processes.values(), default=0),
            },
        )
        return (
            dict(zip([row[0] for row in threads], names, strict=True)),
            dict(zip([row[0] for row in own], numbers, strict=True)),
        )

    def finish(self) -> None:
        """Remove the processes that need not be listed. Settings keep the figures of these
        processes.
        """
        connection = self._store.connection
        single = " UNION ".join(f"SELECT thread_id FROM {table}" for table in SINGLE_EVENT_TABLES)
        connection.execute(
            f"DELETE FROM thread WHERE process_id <> {ALL_PROCESSES} AND id NOT IN ({single})"
            f" AND id NOT IN (SELECT thread_id FROM aggregate)"
        )
        kept = {number for (number,) in connection.execute("SELECT process_id FROM thread")}
        names = TABLE["process"].names
        known: set[tuple[object, ...]] = set()
        more: Counter[str] = Counter()
        listed, gone = 0, []
        for number, *row in connection.execute(
            f"SELECT id, {', '.join(names)} FROM process ORDER BY id"
        ):
            values = dict(zip(names, row, strict=True))
            notable = (
                *(values[name] for name in NOTABLE),
                _clock_tick_magnitude(values["clock_tick_ns"]),
            )
            is_first = listed < MAX_LISTED or notable not in known
            if is_first or number in kept or not values["clean_end"]:
                known.add(notable)
                listed += 1
                continue
            gone.append((number,))
            start, end = (
                values["window_start_unix_ns"] or values["start_unix_ns"],
                values["end_unix_ns"],
            )
            more.update(dict(zip(MORE_PROCESSES[:2], (1, end - start), strict=True)))
            more.update({name: values[name.removeprefix("more_")] or 0 for name in MORE_SUMS})
            more["more_start_unix_ns"] = min(more["more_start_unix_ns"] or start, start)
            more["more_end_unix_ns"] = max(more["more_end_unix_ns"], end)
        connection.executemany("DELETE FROM process WHERE id = ?", gone)
        for name in MORE_PROCESSES if gone else ():
            # at least 1, even if a clock was set back: a trace has all four or none
            more[name] = max(1, more[name])
        add_settings(self._store, more)
