"""The rows of a trace, checked while they are read: the one way from the file's tables to Python.

A trace may be damaged, or made to harm its reader. A value that is returned here has the type that
the schema declares and lies in a range that a recording can give (queryprof.trace.ranges), so that
later computations need no checks. All else is a TraceError that names the table and the column.
Reading always ends: only tables are read, in the order in which they are stored, and no more rows
and texts than the file has room for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from queryprof.errors import TraceError
from queryprof.trace.ranges import LARGEST_SUM, checks
from queryprof.trace.tables import TABLE

Key = TypeVar("Key")
Value = TypeVar("Value")

ROWS_AT_ONCE = 256
SMALLEST_ROW = 6
"""Bytes that a row takes in a SQLite file at the least: a cell, and the pointer to it."""

SHORTEST_LIMIT, LONGEST_LIMIT = 1 << 20, 1 << 26
"""Bytes of one text or row at the most, by the file's size."""

LONGEST_REASON = 200
_STORED_COLUMNS = (
    "SELECT tables.name, columns.name"
    " FROM sqlite_master AS tables, pragma_table_xinfo(tables.name) AS columns"
    " WHERE tables.type = 'table' AND columns.hidden = 0"
)
"""Each column that is not computed."""
_OTHER_OBJECTS = (
    "SELECT name FROM sqlite_master WHERE type <> 'index'"
    " AND (type <> 'table' OR sql NOT LIKE 'CREATE TABLE %') LIMIT 1"
)
"""Views, triggers and virtual tables: a trace has none, and they run code from the file."""


class CheckedTrace:
    """An open trace of the present version.

    Args:
        path: its file, for messages.

    Raises:
        TraceError: a table or column is missing, or is computed where it should be stored.

    Attributes:
        largest_sum: of any column of numbers that was read so far.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self.path = path
        self.largest_sum = 0
        with reading(path, "schema"):
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            stored = set(connection.execute(_STORED_COLUMNS))
        self._bytes = pages * page_bytes
        longest = max(SHORTEST_LIMIT, min(self._bytes, LONGEST_LIMIT))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
        for table, columns in checks().items():
            for column in columns:
                if (table, column) not in stored:
                    raise self.damaged(f"{table}.{column} is missing")

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of a table, in the order in which they are stored (by the primary key).

        Raises:
            TraceError: a value is not what its column may have, or the file cannot be read.
        """
        for chunk in self._checked(table, columns):
            yield from chunk

    def _checked(self, table: str, columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        all_checks = checks()[table]
        column_checks = [(name, all_checks[name]) for name in columns]
        totals = dict.fromkeys(columns, 0)
        left = self._bytes // SMALLEST_ROW
        for chunk in self._chunks(f"SELECT {', '.join(columns)} FROM {table} NOT INDEXED", table):
            left -= len(chunk)
            if left < 0:
                raise self.damaged(f"{table} has more rows than there is room for")
            for (name, check), values in zip(column_checks, zip(*chunk, strict=True), strict=True):
                try:
                    totals[name] += check(values)
                except TypeError:
                    raise self.damaged(f"{table}.{name} has a value of another type") from None
                except ValueError as error:
                    raise self.damaged(f"{table}.{name} {error}") from None
            self._limit(table, totals)
            yield chunk

    def resolved(
        self, table: str, known: Mapping[str, Mapping[Any, Any]]
    ) -> Iterator[tuple[Any, ...]]:
        """All columns of the rows of a table, the id first where there is one; the number of
        another row is replaced by its value in `known`, by table, and a list of numbers by a tuple.
        """
        for columns in self.resolved_columns(table, known):
            yield from zip(*columns, strict=True)

    def resolved_columns(
        self, table: str, known: Mapping[str, Mapping[Any, Any]]
    ) -> Iterator[list[Iterable[Any]]]:
        """As resolved: the columns of some rows at once."""
        facts = TABLE[table]
        columns = facts.in_order
        references = [
            (facts.has_id + at, known[column.reference], column.sql_type == "TEXT")
            for at, column in enumerate(facts.columns)
            if column.reference
        ]
        for chunk in self._checked(table, columns):
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
        """The values of a table's rows by their ids; an unknown id is a TraceError."""
        return Ids(self, table, rows)

    def interval_ns(self, table: str) -> int:
        """How wide the intervals of a table are; 0: it has none."""
        width = TABLE[table].width
        width_ns: int = dict(self.rows("setting", ("name", "value"))).get(width, 0)
        if not width_ns and next(iter(self.rows(table, TABLE[table].names)), None):
            raise self.damaged(f"setting.name has no {width}, which {table} needs")
        return width_ns

    def damaged(self, what: str) -> TraceError:
        """The error for a trace, with what is wrong."""
        return TraceError(f"{self.path}: damaged: {what}")

    def _chunks(self, sql: str, table: str) -> Iterator[list[tuple[Any, ...]]]:
        with reading(self.path, table):
            cursor = self._connection.execute(sql)
        while True:
            with reading(self.path, table):
                chunk = cursor.fetchmany(ROWS_AT_ONCE)
            if not chunk:
                return
            yield chunk

    def _limit(self, table: str, totals: Mapping[str, int]) -> None:
        """Raises TraceError when a column adds up to too much."""
        largest = max(totals.values())
        if largest > LARGEST_SUM:
            column = max(totals, key=totals.__getitem__)
            raise self.damaged(f"{table}.{column} adds up to too much")
        self.largest_sum = max(self.largest_sum, largest)


class Ids(dict[Key, Value]):
    """The values of a table's rows by their ids; an unknown id is a TraceError."""

    def __init__(self, trace: CheckedTrace, table: str, rows: Iterable[tuple[Key, Value]]) -> None:
        super().__init__(rows)
        self._trace = trace
        self._table = table

    def __missing__(self, number: Key) -> Value:
        raise self._trace.damaged(f"{self._table}.id has no {number}, which another table names")


@contextmanager
def reading(path: str, what: str) -> Iterator[None]:
    """Turns what SQLite raises in the block into TraceErrors.

    Args:
        path: the file's.
        what: the block reads, in a word.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeError, OverflowError, MemoryError) as error:
        reason = (str(error) or type(error).__name__)[:LONGEST_REASON]
        if getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY":
            raise TraceError(f"{path}: cannot be read: {reason}") from error
        raise TraceError(f"{path}: damaged: {what}: {reason}") from error


def refuse_other_objects(connection: sqlite3.Connection, path: str) -> None:
    """Raises TraceError when a file has more than tables and indexes."""
    with reading(path, "schema"):
        found = connection.execute(_OTHER_OBJECTS).fetchone()
    if found:
        raise TraceError(f"{path}: damaged: {found[0]} is no table")
