"""Run the fleet's questions (SQL queries in fleet/questions) with DuckDB, in this process.

DuckDB reads only the given files and loads no extension. All values, such as the names of services,
are bound as parameters, and never part of the SQL text.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

import duckdb

from queryprof.errors import TraceError
from queryprof.fleet.parquet_files import escape_text
from queryprof.fleet.question_texts import DEFAULTS, PARAMETER, question_sql
from queryprof.fleet.schema import (
    BUCKETS,
    COUNTS,
    FLEET_TABLE,
    FLEET_TABLES,
    INSTANT,
    INTEGER,
    REAL,
    SMALL,
    TEXT,
    may_be_unknown,
)
from queryprof.fleet.store import damaged_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from queryprof.fleet.schema import FleetColumn
    from queryprof.fleet.store import Store

SELECTED = ("service", "version", "environment", "host", "since", "until")
MAX_NAMES = 20
"""Maximum number of entries (service, version, environment) in a message."""

MEMORY_SHARE = 0.25
"""Share of the machine's memory that DuckDB may use."""

SQL_TYPES = {
    TEXT: "VARCHAR",
    INTEGER: "BIGINT",
    SMALL: "INTEGER",
    REAL: "DOUBLE",
    INSTANT: "TIMESTAMPTZ",
    BUCKETS: "SMALLINT[]",
    COUNTS: "BIGINT[]",
}
SELECTION = """(CAST($service AS VARCHAR) IS NULL OR service = $service)
        AND (CAST($version AS VARCHAR) IS NULL OR version = $version)
        AND (CAST($environment AS VARCHAR) IS NULL OR environment = $environment)
        AND (CAST($host AS VARCHAR) IS NULL OR host = $host)
        AND (CAST($since AS TIMESTAMPTZ) IS NULL OR window_end >= $since)
        AND (CAST($until AS TIMESTAMPTZ) IS NULL OR window_start < $until)"""

UTC = "CAST({0} AS TIMESTAMP) AS {0}"
DAYS = """CAST(CAST(window_start AS TIMESTAMP) AS DATE) AS date,
        CAST(floor(epoch(CAST(window_start AS TIMESTAMP)) / 86400) AS INTEGER) AS day_number,
        CAST(epoch(CAST(window_start AS TIMESTAMP)) AS DOUBLE) AS start_s,
        CAST(epoch(CAST(window_end AS TIMESTAMP)) AS DOUBLE) AS end_s"""

POSSIBLE = """window_start BETWEEN '1970-01-01' AND '9999-01-01'
        AND window_end BETWEEN '1970-01-01' AND '9999-01-01'"""
"""Condition that excludes impossible window times."""

EACH_COLUMN = "SELECT count(COLUMNS(*)) FROM read_parquet($files, hive_partitioning = false)"

DURATION = """SELECT service, version, host, window_start, statement_id, site, span, operation,
        unnest(buckets) AS bucket, unnest(executions) AS executions FROM aggregate"""


@dataclass(frozen=True, slots=True)
class Selection:
    """The windows to query. None means all values."""

    service: str | None = None
    version: str | None = None
    environment: str | None = None
    host: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a question."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts, by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def closed_engine(paths: list[str]) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection that can read only these files. Raises TraceError."""
    try:
        connection = duckdb.connect(":memory:")
        for setting, value in (
            ("allowed_paths", paths),
            ("enable_external_access", False),
            ("autoinstall_known_extensions", False),
            ("autoload_known_extensions", False),
            ("memory_limit", f"{int(MEMORY_SHARE * _memory_bytes()) >> 20}MiB"),
            ("preserve_insertion_order", False),
            ("TimeZone", "UTC"),
            ("lock_configuration", True),
        ):
            connection.execute(f"SET {setting} = $value", {"value": value})
    except duckdb.Error as error:  # the working directory was removed
        raise TraceError(f"DuckDB cannot start: {str(error).partition(chr(10))[0]}") from error
    return connection


def unread_files(paths: list[str]) -> dict[str, str]:
    """Find files that DuckDB cannot read, even if pyarrow accepts their footers.

    Return the reason for each by path. Raises TraceError.
    """
    found: dict[str, str] = {}
    engine = closed_engine(paths)
    for path in paths:
        try:
            engine.execute(EACH_COLUMN, {"files": [path]}).fetchall()
        except duckdb.Error as error:
            found[path] = f"{path}: is damaged: {str(error).partition(chr(10))[0]}"
            engine.close()
            engine = closed_engine(paths)  # some errors make an engine unusable
    engine.close()
    return found


class Engine:
    """DuckDB on the files of a fleet.

    Attributes:
        store: the files, without the damaged files found so far.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._connection = closed_engine(store.paths)

    def close(self) -> None:
        """Close the engine."""
        self._connection.close()

    def text(self, name: str) -> str:
        """Return the SQL of a question, with the tables that it reads in its WITH clause."""
        comment, _, rest = question_sql(name).partition("\nWITH ")
        tables = [
            self._table(table.name) for table in FLEET_TABLES if _reads_table(rest, table.name)
        ]
        if _reads_table(rest, "duration"):
            tables.append(f"duration AS NOT MATERIALIZED (\n    {DURATION}\n)")
        return f"{comment}\nWITH {', '.join(tables)},\n{rest}"

    def _table(self, name: str) -> str:
        """Return the SQL of a table, a UNION ALL over the services. Names of services are
        parameters.
        """
        columns = FLEET_TABLE[name].columns
        names = ", ".join(one.name for one in columns)
        files = [
            f"SELECT {names}, ${name}_service_{at} AS service FROM read_parquet(${name}_files_{at},"
            " union_by_name = true, hive_partitioning = false)"
            for at in range(len(self.store.files[name]))
        ]
        nulls = [f"CAST(NULL AS {SQL_TYPES[one.kind]}) AS {one.name}" for one in columns]
        nulls.append("CAST(NULL AS VARCHAR) AS service")
        source = " UNION ALL ".join(files) or f"SELECT {', '.join(nulls)} WHERE false"
        shown = ", ".join(map(_column_sql, columns))
        return (
            f"{name} AS NOT MATERIALIZED (\n    SELECT {shown}, service, {DAYS}\n"
            f"    FROM ({source})\n    WHERE {POSSIBLE}\n        AND {SELECTION}\n)"
        )

    def _values(self, selection: Selection) -> dict[str, object]:
        found: dict[str, object] = {field: _escape(getattr(selection, field)) for field in SELECTED}
        for name, by_service in self.store.files.items():
            for at, (service, paths) in enumerate(by_service.items()):
                found[f"{name}_service_{at}"] = service
                found[f"{name}_files_{at}"] = paths
        return found

    def refuse_several(self, selection: Selection) -> None:
        """Raise TraceError if the selection has several services."""
        services = [one["service"] for one in self.answer("names", selection).records()]
        if len(set(services)) > 1:
            listed = ", ".join(dict.fromkeys(services))
            raise TraceError(
                f"there are several services: choose one with --where service=NAME: {listed}"
            )

    def refuse_nothing(self, selection: Selection) -> None:
        """Raise TraceError if the selection has no rows. The message lists the available names."""
        if self.answer("names", selection).rows:
            return
        there = self.answer("names", Selection()).records()
        if not there:
            raise TraceError("the selected files contain no rows")
        names = dict.fromkeys(
            f"{one['service']} {one['version'] or '(no version)'}"
            f" {one['environment'] or '(no environment)'}"
            for one in there
        )
        listed = ", ".join(list(names)[:MAX_NAMES])
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        first, last = (
            min(one["first_seen"] for one in there),
            max(one["last_seen"] for one in there),
        )
        raise TraceError(
            "no recording matches the selection; there are recordings from"
            f" {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC: {listed}{more}"
        )

    def answer(self, name: str, selection: Selection, **values: object) -> Answer:
        """Run a question, and return its result. Damaged files are dropped from the store.

        Args:
            values: further parameters of the question.

        Raises:
            TraceError: the files cannot be read, or the engine runs out of memory.
        """
        text = self.text(name)
        named = set(PARAMETER.findall(text))
        known = {**DEFAULTS, **self._values(selection), **values}
        try:
            found = self._connection.execute(text, {one: known[one] for one in named})
            columns = tuple(one[0] for one in found.description or ())
            return Answer(
                columns, tuple(tuple(map(_none_if_infinite, row)) for row in found.fetchall())
            )
        except (duckdb.Error, ValueError, OverflowError, UnicodeError) as error:
            damaged = damaged_files(self.store) or unread_files(self.store.paths)
            if damaged:
                self.store = self.store.without(damaged)
                self._connection.close()
                self._connection = closed_engine(self.store.paths)
                return self.answer(name, selection, **values)
            raise TraceError(
                f"the files cannot be read: {str(error).partition(chr(10))[0]}"
            ) from error
        except RuntimeError as error:
            raise KeyboardInterrupt from error  # an interrupted query raises RuntimeError


def _column_sql(column: FleetColumn) -> str:
    """Return the SQL of a file's column as questions need it: times in UTC, and 0 for missing
    counts.
    """
    if column.kind == INSTANT:
        return UTC.format(column.name)
    if may_be_unknown(column):
        return column.name
    nothing = "[]" if column.kind in (BUCKETS, COUNTS) else "0"
    return f"coalesce({column.name}, {nothing}) AS {column.name}"


def _escape(value: Any) -> Any:
    """Escape a text as the files do (see escape_text). Return any other value unchanged."""
    return escape_text(value) if isinstance(value, str) else value


def _none_if_infinite(value: Any) -> Any:
    """Return None for infinity and NaN, else the value."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _reads_table(text: str, table: str) -> bool:
    """Return whether a question has a table after FROM or JOIN."""
    words = text.split()
    return any(
        before in ("FROM", "JOIN") and word.rstrip(",)") == table
        for before, word in pairwise(words)
    )


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
