"""The trace file as something to add to: rows in the file's own terms, each added to what is
there. The live writer and the merge both write through it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager

from queryprof.errors import TraceError
from queryprof.trace.loop_store import LoopStore
from queryprof.trace.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from queryprof.trace.work_store import WorkStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from queryprof.trace.identity import Identity

    FrameKey = tuple[str, str, int, str]
    AggregateKey = tuple[int, int, int, int, str]

EXEMPLARS_KEPT = 5
"""Slowest executions of each statement that stay in the file."""

TIMELINE_INTERVALS = 512

EXEMPLAR_COLUMNS = (
    "statement_id", "path_id", "span_id", "thread_id", "operation", "started_unix_ns",
    "duration_ns", "rows", "stack_id", "sql", "parameters",
)  # fmt: skip

PROCESS_COLUMNS = (
    "pid", "parent_pid", "host", "argv", "directory", "python_version", "sqlite_version",
    "queryprof_version", "start_unix_ns", "end_unix_ns", "clean_end", "clock", "rows_estimated",
    "counters_off", "call_cost_ns", "flushes", "flush_ns", "folded_statements", "folded_calls",
    "lost_counters", "unasked_plans", "read_bytes", "written_bytes",
    "clock_tick_ns", "unmeasured",
)  # fmt: skip

SUMS = (
    "count", "errors", "rows", "total_ns", "self_ns", "execution_sum_sq_ns2", "counted",
    "vm_steps", "full_scan_steps", "sorts", "automatic_indexes", "reprepares", "page_fetches",
    "page_fetch_samples",
)  # fmt: skip
MAXIMA = ("max_ns", "execution_max_ns")
VALUE_COLUMNS = (*SUMS, "min_ns", *MAXIMA)

FRAME_KEY = ("function", "file", "line")
_KEY_COLUMNS = ("statement_id", "path_id", "span_id", "thread_id", "operation")


def _upsert_aggregate(*first: str) -> str:
    columns = (*first, *_KEY_COLUMNS, *VALUE_COLUMNS)
    updates = [f"{name} = {name} + excluded.{name}" for name in SUMS]
    updates += [f"{name} = max({name}, excluded.{name})" for name in MAXIMA]
    # An addition may have counters and no calls: then it says nothing of the shortest.
    updates.append(
        "min_ns = CASE WHEN excluded.count = 0 THEN min_ns WHEN count = 0 THEN excluded.min_ns"
        " ELSE min(min_ns, excluded.min_ns) END"
    )
    return (
        f"INSERT INTO aggregate ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        f" ON CONFLICT ({', '.join(_KEY_COLUMNS)}) DO UPDATE SET {', '.join(updates)}"
    )


_UPSERT_AGGREGATE = _upsert_aggregate()
_UPSERT_AGGREGATE_OF = _upsert_aggregate("id")
_ADD_BUCKET = (
    "INSERT INTO histogram VALUES (?, ?, ?)"
    " ON CONFLICT (aggregate_id, bucket) DO UPDATE SET executions = executions + excluded.executions"
)
_FIND_AGGREGATE = "SELECT id FROM aggregate WHERE " + " AND ".join(f"{c} = ?" for c in _KEY_COLUMNS)


def storable(value: object) -> object:
    """A value as SQLite stores it: of a name that is no UTF-8, what is not is escaped."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode()


class TraceStore:
    """An open trace file, to which rows are added inside one transaction at a time.

    Args:
        path: the file, which is made with mode 0600 and must not exist; or ":memory:".

    Raises:
        FileExistsError: there is one.
        TraceError: the file cannot be made.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            if path != ":memory:":
                # Only its owner may read it: SQL texts and file names are the program's.
                made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
                os.fchmod(made, 0o600)  # whatever the program's umask is
                os.close(made)
            self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            # The file need survive the process, not the machine: no waiting for the disk.
            self.connection.executescript(
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE;"
                f"PRAGMA cache_size = -1024; PRAGMA application_id = {APPLICATION_ID};"
                f"PRAGMA user_version = {SCHEMA_VERSION}; BEGIN; {SCHEMA} COMMIT;"
            )
        except FileExistsError:
            raise
        except (OSError, sqlite3.Error) as error:
            raise TraceError(f"{path}: the trace cannot be written: {error}") from error
        self.loops = LoopStore(self.connection)
        self.work = WorkStore(self.connection)

    def begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One for the block, which an exception rolls back; inside one that has begun, nothing."""
        if self.connection.in_transaction:
            yield
            return
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self.connection.close()

    def abandon(self) -> None:
        """Leaves the file as the last commit left it."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        self.connection.close()

    def identities(self) -> set[Identity]:
        """The processes that the trace is of."""
        query = "SELECT pid, start_unix_ns, host FROM process"
        return set(self.connection.execute(query))

    def add_process(self, values: Mapping[str, object]) -> int:
        return self._insert(
            f"INSERT INTO process ({', '.join(PROCESS_COLUMNS)})"
            f" VALUES ({', '.join(':' + name for name in PROCESS_COLUMNS)})",
            {name: storable(value) for name, value in values.items()},
        )

    def statement(self, text: str, note: str | None = None) -> int:
        number = self._number("statement", {"text": text})
        if note is not None:
            self.note(number, note)
        return number

    def note(self, statement: int, note: str) -> None:
        """Keeps what a library told of a statement; the first note stays."""
        self.connection.execute(
            "UPDATE statement SET note = coalesce(note, ?) WHERE id = ?",
            (storable(note), statement),
        )

    def stack(self, frames: Iterable[FrameKey]) -> int:
        ids = [str(self.frame(frame)) for frame in frames]
        return self._number("stack", {"frames": ",".join(ids)})

    def frame(self, frame: FrameKey) -> int:
        return self._number("frame", dict(zip(FRAME_KEY, frame[:3], strict=True)), frame[3])

    def span(self, name: str) -> int:
        return self._number("span", {"name": name})

    def thread(self, process: int, name: str) -> int:
        return self._number("thread", {"process_id": process, "name": name})

    def add_aggregate(
        self, key: AggregateKey, values: Sequence[float], histogram: Iterable[tuple[int, int]]
    ) -> None:
        """Adds to an aggregate: `values` in the order of VALUE_COLUMNS, (bucket, executions)."""
        self.connection.execute(_UPSERT_AGGREGATE, (*key, *values))
        (number,) = self.connection.execute(_FIND_AGGREGATE, key).fetchone()
        self.connection.executemany(
            _ADD_BUCKET,
            [(number, bucket, executions) for bucket, executions in histogram],
        )

    def add_aggregates(
        self,
        rows: Iterable[tuple[AggregateKey, Sequence[float], Iterable[tuple[int, int]]]],
        are_new: bool,
    ) -> None:
        """Adds aggregates: (key, `values` in the order of VALUE_COLUMNS, histogram) of each.

        Args:
            are_new: none of them is there.
        """
        known: dict[tuple[object, ...], int] = {}
        if not are_new:
            known = {
                tuple(row[1:]): row[0]
                for row in self.connection.execute(
                    f"SELECT id, {', '.join(_KEY_COLUMNS)} FROM aggregate"
                )
            }
        (last,) = self.connection.execute("SELECT coalesce(max(id), 0) FROM aggregate").fetchone()
        added: list[tuple[float | str, ...]] = []
        buckets: list[tuple[int, int, int]] = []
        for key, values, histogram in rows:
            number = known.get(key)
            if number is None:
                last += 1
                number = known[key] = last
            added.append((number, *key, *values))
            buckets += [(number, bucket, executions) for bucket, executions in histogram]
        self.connection.executemany(_UPSERT_AGGREGATE_OF, added)
        self.connection.executemany(_ADD_BUCKET, buckets)

    def add_error(self, key: tuple[int, int, str, str], count: int) -> None:
        self.connection.execute(
            "INSERT INTO error VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (statement_id, path_id, operation, exception) DO UPDATE SET count = count + excluded.count",
            (*map(storable, key), count),
        )

    def add_exemplars(self, rows: Iterable[Sequence[object]]) -> None:
        """Adds slow executions, as EXEMPLAR_COLUMNS, and forgets all but the slowest of each
        statement.
        """
        columns = ", ".join(EXEMPLAR_COLUMNS)
        values = ", ".join("?" * len(EXEMPLAR_COLUMNS))
        self.connection.executemany(
            f"INSERT INTO exemplar ({columns}) VALUES ({values})",
            ([storable(value) for value in row] for row in rows),
        )
        self.connection.execute(
            "DELETE FROM exemplar WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER"
            " (PARTITION BY statement_id ORDER BY duration_ns DESC, id) AS place FROM exemplar)"
            f" WHERE place > {EXEMPLARS_KEPT})"
        )

    def add_stack_sample(self, statement: int, stack: int, executions: int, ns: int) -> None:
        self.connection.execute(
            "INSERT INTO stack_sample VALUES (?, ?, ?, ?)"
            " ON CONFLICT (statement_id, stack_id) DO UPDATE SET"
            " executions = executions + excluded.executions, ns = ns + excluded.ns",
            (statement, stack, executions, ns),
        )

    def add_plan(self, statement: int, database: str, tree: str) -> None:
        self.connection.execute(
            "INSERT OR IGNORE INTO plan VALUES (?, ?, ?)",
            (statement, storable(database), storable(tree)),
        )

    def add_timeline(self, width_ns: int, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """Adds intervals of a width (a power of two); the wider of the widths is kept."""
        row = self.connection.execute(
            "SELECT value FROM setting WHERE name = 'timeline_width_ns'"
        ).fetchone()
        known = row[0] if row else width_ns
        wide = max(known, width_ns)
        if known < wide:
            self._coarsen(wide)
        self._add_intervals((start - start % wide, *sums) for start, *sums in rows)
        first, last = self.connection.execute(
            "SELECT min(start_unix_ns), max(start_unix_ns) FROM timeline"
        ).fetchone()
        while first is not None and (last - first) // wide >= TIMELINE_INTERVALS:
            wide *= 2
            self._coarsen(wide)
            first -= first % wide
        self.connection.execute(
            "INSERT OR REPLACE INTO setting VALUES ('timeline_width_ns', ?)", (wide,)
        )

    def _coarsen(self, width_ns: int) -> None:
        rows = self.connection.execute("SELECT * FROM timeline").fetchall()
        self.connection.execute("DELETE FROM timeline")
        self._add_intervals((start - start % width_ns, *sums) for start, *sums in rows)

    def _add_intervals(self, rows: Iterable[Sequence[int]]) -> None:
        self.connection.executemany(
            "INSERT INTO timeline VALUES (?, ?, ?, ?)"
            " ON CONFLICT (start_unix_ns) DO UPDATE SET"
            " calls = calls + excluded.calls, rows = rows + excluded.rows,"
            " self_ns = self_ns + excluded.self_ns",
            rows,
        )

    def _number(self, table: str, key: Mapping[str, object], kind: str | None = None) -> int:
        """The id of the row with this unique key, which is made if need be.

        RETURNING would do it in one statement, but SQLite has it only since 3.35.
        """
        key = {name: storable(value) for name, value in key.items()}
        found = self.connection.execute(
            f"SELECT id FROM {table} WHERE " + " AND ".join(f"{name} = :{name}" for name in key),
            key,
        ).fetchone()
        if found:
            number: int = found[0]
            return number
        values = key if kind is None else {**key, "kind": kind}
        return self._insert(
            f"INSERT INTO {table} ({', '.join(values)})"
            f" VALUES ({', '.join(':' + name for name in values)})",
            values,
        )

    def _insert(self, sql: str, values: Mapping[str, object]) -> int:
        number = self.connection.execute(sql, values).lastrowid
        assert number is not None  # an INSERT has run
        return number
