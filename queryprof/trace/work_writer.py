"""The live writer's part about where work belongs: from the core's rows to the file's, and the
threads' resources, once a second.
"""

from __future__ import annotations

from time import time_ns

from queryprof.core.thread_usage import ThreadMeter
from queryprof.trace.work_store import HANDOFF_PARTS, USAGE_WIDTH_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from queryprof.core import _core
    from queryprof.core.recorder import Work
    from queryprof.trace.store import TraceStore

    class Numbers(Protocol):
        """From the recorder's numbers to the file's."""

        def statement(self, number: int) -> int: ...
        def path(self, number: int) -> int: ...
        def span(self, number: int) -> int: ...


def add_work(store: TraceStore, numbers: Numbers, work: Work) -> None:
    """Adds spans, handoffs and notes."""
    for span, count, errors, cpu_count, cpu_ns, database_ns, durations, queries in work.spans:
        store.work.add_span(
            numbers.span(span),
            (count, errors, cpu_count, cpu_ns, database_ns, durations[1], queries[1]),
            (durations[2], queries[2]),
            {"duration": pairs(durations[3]), "queries": pairs(queries[3])},
        )
    for span, statement, path, *sums in work.repeats:
        key = (numbers.span(span), numbers.statement(statement), numbers.path(path))
        store.work.add_repeat(key, *sums)
    for span, status, count in work.statuses:
        store.work.add_status(numbers.span(span), status, count)
    for kind, path, span, count, errors, cancelled, *times in work.handoffs:
        store.work.add_handoff(
            (kind, numbers.path(path), numbers.span(span)),
            (count, errors, cancelled),
            {part: _time(row) for part, row in zip(HANDOFF_PARTS, times, strict=True)},
        )
    for statement, note in work.notes:
        store.note(numbers.statement(statement), note)


def _time(row: _core.DistributionRow) -> tuple[int, int, int, list[tuple[int, int]]]:
    count, total_ns, max_ns, buckets = row
    return count, total_ns, max_ns, pairs(buckets)


def pairs(flat: tuple[int, ...]) -> list[tuple[int, int]]:
    """(bucket, how many) pairs from the core's flat tuples."""
    return list(zip(flat[::2], flat[1::2], strict=True))


class UsageWriter:
    """Adds what the process's threads use to a trace, at most once a second."""

    def __init__(self) -> None:
        self.meter = ThreadMeter()
        self._last_ns = time_ns()

    def add(self, store: TraceStore, process: int, at_end: bool) -> None:
        """Adds what was used since the last time, if that is a second ago, or at the end."""
        now_ns = time_ns()
        if not at_end and now_ns - self._last_ns < USAGE_WIDTH_NS:
            return
        intervals = _spread(self._last_ns, now_ns)
        self._last_ns = now_ns
        rows = []
        for name, sums in self.meter.take().items():
            thread = store.thread(process, name)
            store.work.add_usage(thread, sums)
            figures = (sums[0] + sums[1], sums[4], sums[5])
            rows += [
                (thread, start_ns, *(int(figure * share) for figure in figures))
                for start_ns, share in intervals
            ]
        store.work.add_intervals(USAGE_WIDTH_NS, rows)


def _spread(from_ns: int, to_ns: int) -> list[tuple[int, float]]:
    """The intervals of a time, and the share of it that is in each: what was used in between is
    taken to be spread evenly.
    """
    first, last = from_ns // USAGE_WIDTH_NS, max(from_ns, to_ns - 1) // USAGE_WIDTH_NS
    step = 1 + (last - first) // 64  # after a long silence, every so many seconds will do
    starts = range(first, last + 1, step)
    return [(start * USAGE_WIDTH_NS, 1 / len(starts)) for start in starts]
