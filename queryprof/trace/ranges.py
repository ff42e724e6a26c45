"""Valid values of a trace's columns: the declared type, in a range that a recording can produce.

For speed, a check takes a column's values of many rows and uses functions of C: `sum` and `join`
fail for values of another type. A check returns the sum of the values, for a limit over all rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from queryprof.core.wall_clock import LATEST_UNIX_NS
from queryprof.trace.declaration import Column
from queryprof.trace.tables import TABLES

Values = Sequence[Any]
Check = Callable[[Values], int]
"""Raises TypeError or ValueError if a value is invalid."""

MAX_SUM = 1 << 60
"""Limit for the sum of an integer column over all rows, including merged traces.

It equals 36 years in nanoseconds. SQLite turns sums of more than 64 bits into real numbers.
"""

MAX_REAL = 1e42
"""Limit for sums of squares: more than the square of MAX_SUM."""

COUNTS = frozenset(
    {
        "calls",
        "cancelled",
        "count",
        "counted",
        "cpu_count",
        "errors",
        "pid",
        "queries",
        "runs",
        "steps",
    }
)
"""Columns that are never negative."""

MIN_DIFFERENCE = -(1 << 40)
"""Lower limit for all other numbers. They are differences of two readings, or corrections of an
earlier flush, and may be slightly negative.
"""

MAX_VALUE = 1 << 62
"""The largest value in a distribution."""

MAX_BUCKET = 1023
"""The largest bucket number that is accepted. The core has 640 buckets."""

MAX_LINE = 1 << 31
MAX_ID = (1 << 63) - 1

STACK = re.compile(r"(?:[0-9]{1,19}(?:,[0-9]{1,19})*)?")


@cache
def checks_by_column() -> Mapping[str, Mapping[str, Check]]:
    """Return the checks of all columns, by table and column."""
    found: dict[str, dict[str, Check]] = {}
    for table in TABLES:
        found[table.name] = {"id": _range_check(0, MAX_ID)} if table.has_id else {}
        for column in table.columns:
            check = _column_check(column)
            found[table.name][column.name] = _nullable_check(check) if column.is_optional else check
    return found


def _column_check(column: Column) -> Check:
    if column.name in FORMS:
        return FORMS[column.name]
    if column.sql_type != "INTEGER":
        return _check_texts if column.sql_type == "TEXT" else _check_reals
    if column.reference:
        return _range_check(0, MAX_ID)
    return _number_check(column.name)


def _number_check(column: str) -> Check:
    """Return the check of a number column."""
    bounds = {
        "bucket": (0, MAX_BUCKET),
        "line": (0, MAX_LINE),
        "first_line": (0, MAX_LINE),
        "value": (1, MAX_VALUE),
    }
    if column in bounds:
        return _range_check(*bounds[column])
    if column.endswith("_unix_ns"):
        return _range_check(0, LATEST_UNIX_NS)
    if column in COUNTS:
        return _sum_check(0)
    return _sum_check(
        1 if column == "spans" else MIN_DIFFERENCE
    )  # a repeat is in at least one span


def _sum_check(least: int) -> Check:
    def check(values: Values) -> int:
        if min(values) < least:
            raise ValueError("is too small")
        return _sum_of_integers(sum(values))

    return check


def _range_check(least: int, most: int) -> Check:
    def check(values: Values) -> int:
        _sum_of_integers(sum(values))
        if min(values) < least or max(values) > most:
            raise ValueError(f"is not between {least} and {most}")
        return 0

    return check


def _sum_of_integers(total: Any) -> int:
    """Return the sum. Raises TypeError if a value is not an int."""
    if type(total) is not int:
        raise TypeError
    return total


def _check_reals(values: Values) -> int:
    if type(sum(values)) is not float:
        raise TypeError
    if not (min(values) >= 0 and max(values) <= MAX_REAL):
        raise ValueError("is not a finite number of 0 or more")
    return 0


def _check_texts(values: Values) -> int:
    return len("".join(values))


def _nullable_check(check: Check) -> Check:
    def check_present(values: Values) -> int:
        present = [value for value in values if value is not None]
        return check(present) if present else 0

    return check_present


def _check_stacks(values: Values) -> int:
    if not all(map(STACK.fullmatch, values)):
        raise ValueError("is not a list of numbers")
    return _check_texts(values)


def _check_string_lists(values: Values) -> int:
    if not all(map(_is_list_of_strings, values)):
        raise ValueError("is not a JSON list of strings")
    return _check_texts(values)


def _is_list_of_strings(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


FORMS = {"argv": _check_string_lists, "unmeasured": _check_string_lists, "frames": _check_stacks}
"""The checks of texts that have a format."""
