"""What the columns of a trace may hold: the declared type, in a range that a recording can give.

A check looks at a column's values of many rows at once, in functions of C: `sum` and `join` fail
where a value has another type. It returns what the values add up to, for a limit over all rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from queryprof.trace.schema import SCHEMA

Values = Sequence[Any]
Check = Callable[[Values], int]
"""Raises TypeError or ValueError when a value is not what it may be."""

LARGEST_SUM = 1 << 60
"""Of an integer column over all rows, also of a merge: 36 years in nanoseconds. SQLite makes sums
that do not fit 64 bits real numbers."""

LARGEST_REAL = 1e42
"""More than the square of LARGEST_SUM."""

COUNTS = frozenset({
    "calls", "cancelled", "count", "counted", "cpu_count", "errors", "pid", "queries", "runs",
    "steps",
})  # fmt: skip
"""Columns that are never below zero."""

LEAST_DIFFERENCE = -(1 << 40)
"""Of all other numbers: they are differences of two readings or corrections of what an earlier
flush wrote, and may be a little below zero."""

LATEST_NS = 1 << 62
"""An instant in the year 2116."""

LARGEST_BUCKET = 1023
"""The core has 640 buckets; the bounds of this many still fit 64 bits."""

LARGEST_LINE = 1 << 31
LARGEST_ID = (1 << 63) - 1

STORED_COLUMNS = (
    'SELECT tables.name, columns.name, columns.type, columns.pk OR columns."notnull"'
    " FROM sqlite_master AS tables, pragma_table_xinfo(tables.name) AS columns"
    " WHERE tables.type = 'table' AND columns.hidden = 0"
)
"""The table, name, type, and whether it is never NULL, of each column that is not computed."""


@cache
def checks() -> Mapping[str, Mapping[str, Check]]:
    """The check of each column of the schema, by table and column."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    found: dict[str, dict[str, Check]] = {}
    for table, column, kind, is_present in connection.execute(STORED_COLUMNS):
        check = _texts if kind == "TEXT" else _reals if kind == "REAL" else _check_of(column)
        found.setdefault(table, {})[column] = check if is_present else _or_null(check)
    connection.close()
    return found


def _check_of(column: str) -> Check:
    """The check of an integer column."""
    if column == "id" or column.endswith("_id"):
        return _between(0, LARGEST_ID)
    bounds = {
        "bucket": (0, LARGEST_BUCKET), "line": (0, LARGEST_LINE), "value": (1, LATEST_NS),
    }  # fmt: skip
    if column in bounds:
        return _between(*bounds[column])
    if column.endswith("_unix_ns"):
        return _between(0, LATEST_NS)
    if column in COUNTS:
        return _sums(0)
    return _sums(1 if column == "spans" else LEAST_DIFFERENCE)  # a repeat is of some spans


def _sums(least: int) -> Check:
    def check(values: Values) -> int:
        if min(values) < least:
            raise ValueError("is too small")
        return _integer(sum(values))

    return check


def _between(least: int, most: int) -> Check:
    def check(values: Values) -> int:
        _integer(sum(values))
        if min(values) < least or max(values) > most:
            raise ValueError(f"is not from {least} to {most}")
        return 0

    return check


def _integer(total: Any) -> int:
    """A sum that is no integer has a number among its values that is none."""
    if type(total) is not int:
        raise TypeError
    return total


def _reals(values: Values) -> int:
    if type(sum(values)) is not float:
        raise TypeError
    if not (min(values) >= 0 and max(values) <= LARGEST_REAL):
        raise ValueError("is no finite number from 0 on")
    return 0


def _texts(values: Values) -> int:
    return len("".join(values))


def _or_null(check: Check) -> Check:
    def check_present(values: Values) -> int:
        present = [value for value in values if value is not None]
        return check(present) if present else 0

    return check_present
