"""The event loops' part of a trace file, as something to add to; beside queryprof.trace.store."""

from __future__ import annotations

from queryprof.trace.upsert import upsert

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    Pairs = Iterable[tuple[int, int]]
    """(bucket, how many)"""

    CauseRow = tuple[int, int, int, int]
    """(statement id, path id, calls, ns)"""

LOOP_SUMS = ("runs", "run_ns", "busy_ns", "steps", "waiting")
LAG_SOURCES = ("timer", "beat")
LAG_SUMS = ("count", "total_ns")
STEP_SUMS = ("count", "total_ns", "database_ns", "gc_ns")
STALL_SUMS = (
    "count", "total_ns", "database_ns", "gc_ns", "gil_ns", "cpu_ns", "cpu_of_ns", "delayed",
    "delay_ns", "samples",
)  # fmt: skip


_ADD_LOOP = upsert("loop", ("kind", "thread_id"), LOOP_SUMS, ("waiting_max", "has_steps"))
_ADD_LAG = upsert("lag", ("loop_id", "source"), LAG_SUMS, ("max_ns",))
_ADD_LAG_BUCKET = upsert("lag_histogram", ("loop_id", "source", "bucket"), ("count",))
_ADD_STEP = upsert("step", ("loop_id", "frame_id"), STEP_SUMS, ("max_ns",))
_ADD_STEP_BUCKET = upsert("step_histogram", ("step_id", "bucket"), ("count",))
_ADD_STALL = upsert("stall", ("loop_id", "frame_id", "path_id"), STALL_SUMS, ("max_ns",))


class LoopStore:
    """Adds rows about event loops through an open trace's connection, inside its transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add_loop(
        self, kind: str, thread: int, has_steps: bool, sums: Sequence[int], waiting_max: int
    ) -> int:
        """Adds to a loop, `sums` in the order of LOOP_SUMS; returns its id."""
        self._connection.execute(_ADD_LOOP, (kind, thread, *sums, waiting_max, has_steps))
        return self._id("SELECT id FROM loop WHERE kind = ? AND thread_id = ?", (kind, thread))

    def add_lag(
        self, loop: int, source: str, sums: Sequence[int], max_ns: int, buckets: Pairs
    ) -> None:
        """Adds to a loop's lag, `sums` in the order of LAG_SUMS."""
        self._connection.execute(_ADD_LAG, (loop, source, *sums, max_ns))
        self._connection.executemany(
            _ADD_LAG_BUCKET, [(loop, source, bucket, count) for bucket, count in buckets]
        )

    def add_step(
        self,
        loop: int,
        frame: int,
        sums: Sequence[int],
        max_ns: int,
        buckets: Pairs,
        causes: Iterable[CauseRow],
    ) -> None:
        """Adds to a function's steps, `sums` in the order of STEP_SUMS."""
        self._connection.execute(_ADD_STEP, (loop, frame, *sums, max_ns))
        step = self._id("SELECT id FROM step WHERE loop_id = ? AND frame_id = ?", (loop, frame))
        self._connection.executemany(
            _ADD_STEP_BUCKET, [(step, bucket, count) for bucket, count in buckets]
        )
        self._add_causes("step", step, causes)

    def add_stall(
        self,
        key: tuple[int, int, int],
        stack: int | None,
        sums: Sequence[int],
        max_ns: int,
        causes: Iterable[CauseRow],
    ) -> None:
        """Adds to the stalls of a (loop, frame, path), `sums` in the order of STALL_SUMS."""
        find = " FROM stall WHERE loop_id = ? AND frame_id = ? AND path_id = ?"
        known = self._connection.execute("SELECT max_ns" + find, key).fetchone()
        self._connection.execute(_ADD_STALL, (*key, *sums, max_ns))
        stall = self._id("SELECT id" + find, key)
        if stack is not None and (known is None or max_ns >= known[0]):
            self._connection.execute("UPDATE stall SET stack_id = ? WHERE id = ?", (stack, stall))
        self._add_causes("stall", stall, causes)

    def _add_causes(self, owner: str, number: int, causes: Iterable[CauseRow]) -> None:
        self._connection.executemany(
            upsert(f"{owner}_cause", (f"{owner}_id", "statement_id", "path_id"), ("calls", "ns")),
            [(number, *cause) for cause in causes],
        )

    def _id(self, sql: str, key: Sequence[object]) -> int:
        (number,) = self._connection.execute(sql, key).fetchone()
        return int(number)
