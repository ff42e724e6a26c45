"""The live writer's part about where work belongs: from the core's rows to the file's."""

from __future__ import annotations

from queryprof.trace.work_store import HANDOFF_PARTS
from queryprof.trace.writer import pairs

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
