"""A trace file's part about where work belongs, as something to add to; beside
queryprof.trace.store.
"""

from __future__ import annotations

from queryprof.trace.upsert import upsert

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    Pairs = Iterable[tuple[int, int]]
    """(bucket, how many)"""

SPAN_SUMS = ("count", "errors", "cpu_count", "cpu_ns", "database_ns", "total_ns", "queries")
SPAN_MAXIMA = ("max_ns", "queries_max")
SPAN_FIGURES = ("duration", "queries")
HANDOFF_SUMS = ("count", "errors", "cancelled")
HANDOFF_PARTS = ("queue", "run", "handback", "total")
USAGE_SUMS = (
    "user_ns", "system_ns", "voluntary_switches", "involuntary_switches", "read_bytes",
    "written_bytes", "read_calls", "write_calls",
)  # fmt: skip
INTERVAL_SUMS = ("cpu_ns", "read_bytes", "written_bytes")

USAGE_INTERVALS = 128
"""Of a thread's timeline: with more, intervals become twice as wide."""

_ADD_SPAN = upsert("span_total", ("span_id",), SPAN_SUMS, SPAN_MAXIMA)
_ADD_SPAN_BUCKET = upsert("span_histogram", ("span_id", "figure", "bucket"), ("count",))
_ADD_REPEAT = upsert(
    "span_repeat", ("span_id", "statement_id", "path_id"), ("spans", "executions"), ("most",)
)
_ADD_STATUS = upsert("span_status", ("span_id", "status"), ("count",))
_ADD_HANDOFF = upsert("handoff", ("kind", "path_id", "span_id"), HANDOFF_SUMS)
_ADD_HANDOFF_TIME = upsert(
    "handoff_time", ("handoff_id", "part"), ("count", "total_ns"), ("max_ns",)
)
_ADD_HANDOFF_BUCKET = upsert("handoff_histogram", ("handoff_id", "part", "bucket"), ("count",))
_ADD_USAGE = upsert("thread_usage", ("thread_id",), USAGE_SUMS)
_ADD_INTERVAL = upsert("thread_timeline", ("thread_id", "start_unix_ns"), INTERVAL_SUMS)


class WorkStore:
    """Adds rows through an open trace's connection, inside its transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add_span(
        self, span: int, sums: Sequence[int], maxima: Sequence[int], buckets: Mapping[str, Pairs]
    ) -> None:
        """Adds to a span: `sums` and `maxima` in the order of SPAN_SUMS and SPAN_MAXIMA, buckets
        by figure.
        """
        self._connection.execute(_ADD_SPAN, (span, *sums, *maxima))
        self._connection.executemany(
            _ADD_SPAN_BUCKET,
            [(span, figure, *pair) for figure, pairs in buckets.items() for pair in pairs],
        )

    def add_repeat(self, key: tuple[int, int, int], spans: int, executions: int, most: int) -> None:
        """Adds to the repeats of a (span, statement, path)."""
        self._connection.execute(_ADD_REPEAT, (*key, spans, executions, most))

    def add_status(self, span: int, status: int, count: int) -> None:
        self._connection.execute(_ADD_STATUS, (span, status, count))

    def add_handoff(
        self,
        key: tuple[str, int, int],
        sums: Sequence[int],
        times: Mapping[str, tuple[int, int, int, Pairs]],
    ) -> None:
        """Adds to the handoffs of a (kind, path, span); `sums` in the order of HANDOFF_SUMS,
        (count, total_ns, max_ns, buckets) by part.
        """
        self._connection.execute(_ADD_HANDOFF, (*key, *sums))
        (number,) = self._connection.execute(
            "SELECT id FROM handoff WHERE kind = ? AND path_id = ? AND span_id = ?", key
        ).fetchone()
        for part, (count, total_ns, max_ns, pairs) in times.items():
            self._connection.execute(_ADD_HANDOFF_TIME, (number, part, count, total_ns, max_ns))
            self._connection.executemany(
                _ADD_HANDOFF_BUCKET, [(number, part, *pair) for pair in pairs]
            )

    def add_usage(self, thread: int, sums: Sequence[int]) -> None:
        """Adds to what a thread used, in the order of USAGE_SUMS."""
        self._connection.execute(_ADD_USAGE, (thread, *sums))

    def add_intervals(self, width_ns: int, rows: Iterable[tuple[int, int, int, int, int]]) -> None:
        """Adds (thread, start_unix_ns, cpu_ns, read_bytes, written_bytes) of intervals of a width:
        a second, or that times a power of two. The wider of the widths is kept.
        """
        row = self._connection.execute(
            "SELECT value FROM setting WHERE name = 'usage_width_ns'"
        ).fetchone()
        known = row[0] if row else width_ns
        wide = max(known, width_ns)
        if known < wide:
            self._coarsen(wide)
        self._connection.executemany(
            _ADD_INTERVAL, [(thread, start - start % wide, *sums) for thread, start, *sums in rows]
        )
        first, last = self._connection.execute(
            "SELECT min(start_unix_ns), max(start_unix_ns) FROM thread_timeline"
        ).fetchone()
        while first is not None and (last - first) // wide >= USAGE_INTERVALS:
            wide *= 2
            self._coarsen(wide)
            first -= first % wide
        self._connection.execute(
            "INSERT OR REPLACE INTO setting VALUES ('usage_width_ns', ?)", (wide,)
        )

    def _coarsen(self, width_ns: int) -> None:
        rows = self._connection.execute("SELECT * FROM thread_timeline").fetchall()
        self._connection.execute("DELETE FROM thread_timeline")
        self._connection.executemany(
            _ADD_INTERVAL,
            [(thread, start - start % width_ns, *sums) for thread, start, *sums in rows],
        )
