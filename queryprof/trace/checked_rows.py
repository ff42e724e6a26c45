"""Read the rows of a trace and check them. All tables are read through this module.

A trace may be damaged, or made to harm its reader. Each returned value has the type declared in the
schema, and is in a range that a recording can produce (queryprof.trace.ranges). Later computations
therefore need no checks. Other values raise a TraceError that names the table and the column.

Reading always ends: only tables are read, in stored order, and only as many rows and texts as fit
in the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from queryprof.errors import TraceError
from queryprof.trace.ranges import MAX_SUM, checks_by_column
from queryprof.trace.tables import TABLE

Key = TypeVar("Key")
Value = TypeVar("Value")

ROWS_AT_ONCE = 256
MIN_ROW_BYTES = 6
"""Minimum bytes of a row in a SQLite file: a cell, and the pointer to the cell."""

MIN_LENGTH_LIMIT, MAX_LENGTH_LIMIT = 1 << 20, 1 << 26
"""Bounds of the length limit for a text or row, in bytes. The file's size determines the limit."""

MAX_REASON_CHARACTERS = 200
_STORED_COLUMNS = (
    "SELECT tables.name, columns.name"
    " FROM sqlite_master AS tables, pragma_table_xinfo(tables.name) AS columns"
    " WHERE tables.type = 'table' AND columns.hidden = 0"
)
"""Selects all columns that are stored, not computed."""
_OTHER_OBJECTS = (
    "SELECT name FROM sqlite_master WHERE type <> 'index'"
    " AND (type <> 'table' OR sql NOT LIKE 'CREATE TABLE %') LIMIT 1"
)
"""Selects a view, trigger or virtual table. Such objects could run code; a trace has none."""


class CheckedTrace:
    """An open trace of the present version.

    Args:
        path: the trace's file, for messages.

    Raises:
        TraceError: a table or column is missing, or is computed instead of stored.

    Attributes:
        largest_sum: largest sum of any number column read so far.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self.path = path
        self.largest_sum = 0
        with raising_trace_errors(path, "schema"):
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            stored = set(connection.execute(_STORED_COLUMNS))
        self._bytes = pages * page_bytes
        longest = max(MIN_LENGTH_LIMIT, min(self._bytes, MAX_LENGTH_LIMIT))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
        for table, columns in checks_by_column().items():
            for column in columns:
                if (table, column) not in stored:
                    raise self.damage_error(f"{table}.{column} is missing")

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table in stored order, which is the order of the primary key.

        Raises:
            TraceError: a value is not valid for its column, or the file cannot be read.
        """
        for chunk in self._check_columns(table, columns):
            yield from chunk

    def _check_columns(self, table: str, columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        all_checks = checks_by_column()[table]
        column_checks = [(name, all_checks[name]) for name in columns]
        totals = dict.fromkeys(columns, 0)
        left = self._bytes // MIN_ROW_BYTES
        for chunk in self._read_chunks(
            f"SELECT {', '.join(columns)} FROM {table} NOT INDEXED", table
        ):
            left -= len(chunk)
            if left < 0:
                raise self.damage_error(f"{table} has more rows than a file of this size can hold")
            for (name, check), values in zip(column_checks, zip(*chunk, strict=True), strict=True):
                try:
                    totals[name] += check(values)
                except TypeError:
                    raise self.damage_error(f"{table}.{name} has a value of another type") from None
                except ValueError as error:
                    raise self.damage_error(f"{table}.{name} {error}") from None
            self._check_sums(table, totals)
            yield chunk

    def resolved_rows(
        self, table: str, known: Mapping[str, Mapping[Any, Any]]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield complete rows of a table, with the id first if there is one.

        References become values from `known`, which is keyed by table; a list of references becomes
        a tuple.
        """
        for columns in self.resolved_columns(table, known):
            yield from zip(*columns, strict=True)

    def resolved_columns(
        self, table: str, known: Mapping[str, Mapping[Any, Any]]
    ) -> Iterator[list[Iterable[Any]]]:
        """Yield the columns of several rows at once; otherwise like `resolved_rows`."""
        facts = TABLE[table]
        columns = facts.ordered_names
        references = [
            (facts.has_id + at, known[column.reference], column.sql_type == "TEXT")
            for at, column in enumerate(facts.columns)
            if column.reference
        ]
        for chunk in self._check_columns(table, columns):
            values: list[Iterable[Any]] = list(zip(*chunk, strict=True))
            for at, others, is_list in references:
                find = others.__getitem__
                values[at] = (
                    [
                        tuple(map(find, map(int, one.split(",")))) if one else ()
                        for one in values[at]
                    ]
                    if is_list
                    else map(find, values[at])
                )
            yield values

    def ids(self, table: str, rows: Iterable[tuple[Any, Value]]) -> Mapping[Any, Value]:
        """Map the ids of a table's rows to values. An unknown id raises TraceError."""
        return ValuesById(self, table, rows)

    def interval_ns(self, table: str) -> int:
        """Return the width of a table's intervals in ns; 0 if the table has no intervals."""
        width = TABLE[table].width
        width_ns: int = dict(self.rows("setting", ("name", "value"))).get(width, 0)
        if not width_ns and next(iter(self.rows(table, TABLE[table].names)), None):
            raise self.damage_error(f"setting.name has no {width}, which {table} needs")
        return width_ns

    def damage_error(self, what: str) -> TraceError:
        """Return the error for a damaged trace."""
        return TraceError(f"{self.path}: damaged: {what}")

    def _read_chunks(self, sql: str, table: str) -> Iterator[list[tuple[Any, ...]]]:
        with raising_trace_errors(self.path, table):
            cursor = self._connection.execute(sql)
        while True:
            with raising_trace_errors(self.path, table):
                chunk = cursor.fetchmany(ROWS_AT_ONCE)
            if not chunk:
                return
            yield chunk

    def _check_sums(self, table: str, totals: Mapping[str, int]) -> None:
        """Raise TraceError if the sum of a column is too large."""
        largest = max(totals.values())
        if largest > MAX_SUM:
            column = max(totals, key=totals.__getitem__)
            raise self.damage_error(f"{table}.{column} adds up to too much")
        self.largest_sum = max(self.largest_sum, largest)


class ValuesById(dict[Key, Value]):
    """Values of a table's rows by id. An unknown id raises TraceError."""

    def __init__(self, trace: CheckedTrace, table: str, rows: Iterable[tuple[Key, Value]]) -> None:
        super().__init__(rows)
        self._trace = trace
        self._table = table

    def __missing__(self, number: Key) -> Value:
        raise self._trace.damage_error(
            f"{self._table}.id has no {number}, which another table refers to"
        )


@contextmanager
def raising_trace_errors(path: str, what: str) -> Iterator[None]:
    """Turn SQLite's errors in the block into TraceErrors.

    Args:
        path: the file's path.
        what: what the block reads, in one word.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeError, OverflowError, MemoryError) as error:
        reason = (str(error) or type(error).__name__)[:MAX_REASON_CHARACTERS]
        if getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY":
            raise TraceError(f"{path}: cannot be read: {reason}") from error
        raise TraceError(f"{path}: damaged: {what}: {reason}") from error


def refuse_other_objects(connection: sqlite3.Connection, path: str) -> None:
    """Raise TraceError if a file has objects other than tables and indexes."""
    with raising_trace_errors(path, "schema"):
        found = connection.execute(_OTHER_OBJECTS).fetchone()
    if found:
        raise TraceError(f"{path}: damaged: {found[0]} is not a table")
