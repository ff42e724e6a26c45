"""Define the tables of a fleet: their columns, and how to merge two rows with the same key.

Figures come from the columns of a trace's tables (queryprof.trace.tables) with the same names, so a
new column in a trace also appears in the Parquet files. Unknown figures are null, never 0.
"""

from __future__ import annotations

from typing import NamedTuple

from queryprof.trace.declaration import FIRST, KEY, LEAST, MOST, SUM
from queryprof.trace.tables import TABLE

SCHEMA = 1
"""The schema version of the tables. A version may add columns, but never changes or removes any."""

HISTOGRAM = 7
"""The role of a column with a list of histogram buckets, or of the counts in these buckets."""

TEXT, INTEGER, SMALL, REAL, INSTANT, BUCKETS, COUNTS = (
    "text",
    "integer",
    "small integer",
    "real",
    "instant",
    "buckets",
    "counts",
)
TYPE_BY_SQL_TYPE = {"INTEGER": INTEGER, "REAL": REAL, "TEXT": TEXT}

COUNTED_BY = {
    "min_ns": "count",
    "max_ns": "count",
    "execution_max_ns": "executions",
    "vm_steps": "counted",
    "full_scan_steps": "counted",
    "sorts": "counted",
    "automatic_indexes": "counted",
    "page_fetches": "page_fetch_samples",
    "cpu_ns": "cpu_count",
    "queries_max": "count",
    "file_max_lock_ns": "file_lock_waits",
}
"""Figures that are unknown (null) if the sample count in this other column is 0."""


def may_be_unknown(column: FleetColumn) -> bool:
    """Return whether a column may be null. queryprof never writes null to any other column."""
    return (
        column.name in COUNTED_BY or column.name.startswith("file_") or column.role in (KEY, FIRST)
    )


class FleetColumn(NamedTuple):
    """A column of a fleet's table.

    Attributes:
        kind: the type: TEXT, INTEGER, ... role: a role of the trace's columns, or HISTOGRAM.
    """

    name: str
    kind: str
    role: int


class FleetTable(NamedTuple):
    """A table of the fleet. The key columns come first."""

    name: str
    columns: tuple[FleetColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple([column.name for column in self.columns])

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple([column.name for column in self.columns if column.role == KEY])


def _key_columns(*names: str) -> tuple[FleetColumn, ...]:
    return tuple(FleetColumn(name, TEXT, KEY) for name in names)


def _text_columns(*names: str) -> tuple[FleetColumn, ...]:
    return tuple(FleetColumn(name, TEXT, FIRST) for name in names)


def figures(table: str, prefix: str = "") -> tuple[FleetColumn, ...]:
    """Return the columns of a trace's table that are not in the key."""
    return tuple(
        FleetColumn(f"{prefix}{column.name}", TYPE_BY_SQL_TYPE[column.sql_type], column.role)
        for column in TABLE[table].columns
        if column.role != KEY
    )


OWNER = _key_columns("version", "environment", "host")
WINDOW = (
    FleetColumn("window_start", INSTANT, LEAST),
    FleetColumn("window_end", INSTANT, MOST),
    FleetColumn("processes", SMALL, MOST),
)


def _histogram(counts: str) -> tuple[FleetColumn, ...]:
    return FleetColumn("buckets", BUCKETS, HISTOGRAM), FleetColumn(counts, COUNTS, HISTOGRAM)


FLEET_TABLES = (
    FleetTable(
        "aggregate",
        (
            *OWNER,
            *_key_columns("statement_id", "path", "span", "operation"),
            *WINDOW,
            *_text_columns("statement", "system", "site", "place"),
            *figures("aggregate"),
            *figures("file_work", "file_"),
            *_histogram("executions"),
        ),
    ),
    FleetTable(
        "span",
        (*OWNER, *_key_columns("span"), *WINDOW, *figures("span_total"), *_histogram("spans")),
    ),
    FleetTable(
        "plan",
        (
            *OWNER,
            *_key_columns("statement_id", "database", "tree"),
            *WINDOW,
            *_text_columns("statement", "plan_id"),
        ),
    ),
    FleetTable(
        "finding",
        (
            *OWNER,
            *_key_columns("identity"),
            *WINDOW,
            *_text_columns("category", "severity"),
            FleetColumn("gain_ns", INTEGER, SUM),
            *_text_columns("statement_id", "site", "fix", "evidence"),
        ),
    ),
)
FLEET_TABLE = {table.name: table for table in FLEET_TABLES}
