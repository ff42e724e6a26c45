"""The live writer's part about what threads use, at most once a second."""

from __future__ import annotations

from time import time_ns

from queryprof.core.thread_usage import ThreadMeter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queryprof.trace.store import TraceStore

USAGE_WIDTH_NS = 1_000_000_000
"""Of an interval in a trace that is still short."""


class UsageWriter:
    """Adds what the process's threads use to a trace, at most once a second.

    Attributes:
        meter: learns of threads that have ended.
    """

    def __init__(self) -> None:
        self.meter = ThreadMeter()
        self._last_ns = time_ns()
        self._used: Mapping[str, list[int]] = {}
        self._intervals: list[tuple[int, float]] = []

    def begin_flush(self, at_end: bool = False) -> None:
        """Looks at the threads before a flush, if a second has passed or at the end; what the
        calling thread uses until `end_flush` is not the program's.
        """
        now_ns = time_ns()
        if at_end or now_ns - self._last_ns >= USAGE_WIDTH_NS:
            self._used = self.meter.take()
            self._intervals = _spread(self._last_ns, now_ns)
            self._last_ns = now_ns
        self.meter.begin_own_work()

    def add(self, store: TraceStore, process: int) -> None:
        """Adds what was seen, inside the flush's transaction."""
        rows = []
        for name, sums in self._used.items():
            thread = store.thread(process, name)
            store.work.add_usage(thread, sums)
            cpu_ns, read, written = sums[0] + sums[1], sums[4], sums[5]
            rows += [
                (thread, start_ns, int(cpu_ns * share), int(read * share), int(written * share))
                for start_ns, share in self._intervals
            ]
        if rows:
            store.work.add_intervals(USAGE_WIDTH_NS, rows)
        self._used = {}

    def end_flush(self) -> None:
        self.meter.end_own_work()


def _spread(from_ns: int, to_ns: int) -> list[tuple[int, float]]:
    """The intervals of a time, and the share of it that is in each: what was used in between is
    taken to be spread evenly.
    """
    first, last = from_ns // USAGE_WIDTH_NS, max(from_ns, to_ns - 1) // USAGE_WIDTH_NS
    step = 1 + (last - first) // 64  # after a long silence, every so many seconds will do
    starts = range(first, last + 1, step)
    return [(start * USAGE_WIDTH_NS, 1 / len(starts)) for start in starts]
