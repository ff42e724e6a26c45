"""What becomes of processes and threads when many traces are collapsed into one: threads of one
name, of all processes, are one, and only the first processes are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.declaration import SUM
from queryprof.trace.schema import MORE_PROCESSES, OF_ALL
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE

MOST_LISTED = 1000

WITH_PROCESS = ("exemplar", "lock_event", "span_slowest", "span_run")
"""Tables of single executions, holds and spans, of which few are kept: they keep their process."""

NAMES = TABLE["process"].names
ENDED = ("clean_end", "counters_off", "files_off", "unmeasured", "unseen_files")
"""What the report has cautions of: a process with new ones is listed."""


class Collapse:
    """Adds processes and threads of traces to a store."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._listed = 0
        self._last = 0
        self._cautions: set[tuple[object, ...]] = set()

    def add_processes(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, int]]:
        """Adds those that are to be listed, and returns the numbers of all: their own, or OF_ALL.

        Args:
            rows: of `process`, their number first.
        """
        for number, *row in rows:
            values = dict(zip(NAMES, row, strict=True))
            cautions = tuple(values[name] for name in ENDED)
            is_new = cautions not in self._cautions or not values["clean_end"]
            if self._listed < MOST_LISTED or is_new:
                self._listed += 1
                self._cautions.add(cautions)
                (self._last,) = self._store.add("process", [row])
                yield number, self._last
            else:
                self._count(values)
                yield number, OF_ALL

    def _count(self, values: Mapping[str, Any]) -> None:
        start, end = values["start_unix_ns"], values["end_unix_ns"]
        add_more(self._store, (1, end - start, start, end))
        # What limits the report adds up in a process that is listed.
        self._store.update("process", self._last, (SUM,), values)

    def add_threads(
        self, source: CheckedTrace, rows: Iterable[tuple[Any, ...]]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Adds the threads of a trace, and returns their numbers: of the threads of a name, and of
        those that single executions are of.
        """
        threads = list(rows)
        used = {
            number for table in WITH_PROCESS for (number,) in source.rows(table, ("thread_id",))
        }
        names = self._store.add("thread", [(OF_ALL, name) for _, _, name in threads])
        own = [row for row in threads if row[0] in used]
        numbers = self._store.add("thread", [row[1:] for row in own])
        return (
            dict(zip([row[0] for row in threads], names, strict=True)),
            dict(zip([row[0] for row in own], numbers, strict=True)),
        )


def add_more(store: TraceStore, values: tuple[int, ...]) -> None:
    """Adds processes that are not listed: how many, their run times, first start, last end."""
    known = store.settings()
    if MORE_PROCESSES[0] in known:
        joins = (int.__add__, int.__add__, min, max)
        earlier = (known.get(name, 0) for name in MORE_PROCESSES)
        values = tuple(map(lambda join, *both: join(*both), joins, earlier, values))
    rows = zip(MORE_PROCESSES, values, strict=True)
    store.add("setting", [(name, value) for name, value in rows if value > 0])
