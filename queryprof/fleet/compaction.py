"""Combine the files of a day into one.

All windows of a host and version become one window for the day. The combined file never changes.
Its name is a hash of its source files' names, and its footer lists them. A later run removes the
sources after a day, because until then a reader may still use them.

If a run is killed, or two runs overlap, no row is lost or counted twice (queryprof.fleet.days).
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from queryprof.errors import TraceError
from queryprof.fleet.copies import is_plain
from queryprof.fleet.days import DAY, day_of
from queryprof.fleet.duck import closed_engine, unread_files
from queryprof.fleet.footer import Footer, merge_lost
from queryprof.fleet.location import Directory
from queryprof.fleet.names import identifier
from queryprof.fleet.parquet_files import (
    COMPRESSION_LEVEL,
    ENDING,
    ROWS_IN_A_GROUP,
    UNREADABLE,
    arrow_schema,
)
from queryprof.fleet.schema import FLEET_TABLES, HISTOGRAM, INTEGER, OWNER
from queryprof.fleet.store import (
    count_nested_windows,
    footer_in_schema,
    refuse_more_rows_than_bytes,
    refuse_strange_name,
)
from queryprof.trace.declaration import FIRST, KEY, LEAST, MOST, SUM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from queryprof.fleet.location import Entry, Location
    from queryprof.fleet.schema import FleetColumn, FleetTable

KEEP_SOURCES_NS = 24 * 3600 * 10**9
"""How long the source files stay after a combined file has their rows."""

FILES_AT_ONCE, ROWS_AT_ONCE = 1000, 200_000
"""The approximate number of files and rows to combine at once. During this, each histogram bucket
becomes a row, about 15 for each row of the files. Opening a file takes 0.7 ms for each range of
rows.
"""

COMPACTED_AGE = timedelta(days=2)
"""Dates are compacted when they ended at least this long ago. Until then, hosts may still send
windows.
"""

FOLDS = {KEY: "{0}", FIRST: "min({0})", SUM: "sum({0})", LEAST: "min({0})", MOST: "max({0})"}


class Compacted(NamedTuple):
    """The result of one run: the numbers of written combined files, of their sources, and of
    deleted files.
    """

    days: int
    sources: int
    removed: int


class Compaction:
    """Compacts the files of a location.

    Args:
        keep: delete dates that ended at least this long ago; None to keep all.
        note: called with one line for each message.
    """

    def __init__(
        self, location: Location, keep: timedelta | None, note: Callable[[str], None]
    ) -> None:
        self._location = location
        self._keep = keep
        self._note = note
        self._now_ns = time.time_ns()

    def run(self) -> Compacted:
        """Compact all dates that are old enough.

        Raises:
            LocationError: the location cannot be read, or written to.
        """
        self._location.remove_unfinished(self._now_ns - KEEP_SOURCES_NS)
        days = sources = removed = 0
        for table in FLEET_TABLES:
            for folder, entries in sorted(self._files_by_folder(table.name).items()):
                if self._is_past(folder, self._keep):
                    removed += self._remove(entries)
                elif self._is_past(folder, COMPACTED_AGE) and not _is_compact(entries):
                    merged_rows, gone = self._compact(table, folder, entries)
                    days += bool(merged_rows)
                    sources += merged_rows
                    removed += gone
        return Compacted(days, sources, removed)

    def _files_by_folder(self, table: str) -> dict[str, list[Entry]]:
        """Return the files of a table, grouped by folder (one per service and date)."""
        found: dict[str, list[Entry]] = {}
        for entry in self._location.entries(table):
            if is_plain(entry.name):
                found.setdefault(entry.name.rpartition("/")[0], []).append(entry)
        return found

    def _is_past(self, folder: str, age: timedelta | None) -> bool:
        """Return whether a folder's date ended at least `age` ago."""
        try:
            date = datetime.strptime(folder.rpartition("/")[2], "date=%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            return False
        now = datetime.fromtimestamp(self._now_ns / 1e9, UTC)
        return age is not None and date + timedelta(days=1) + age <= now

    def _remove(self, entries: Sequence[Entry]) -> int:
        for entry in entries:
            self._location.remove(entry.name)
        return len(entries)

    def _compact(self, table: FleetTable, folder: str, entries: Sequence[Entry]) -> tuple[int, int]:
        """Compact a folder. Return the numbers of combined and deleted files."""
        with _local_paths(self._location, entries) as paths:
            footers = self._footers(table, paths)
            day = day_of({name: footer.sources for name, footer in footers.items()})
            count = 0
            if [name for name in day.counted if not name.startswith(DAY)] or len(day.counted) > 1:
                counted = {name: paths[name] for name in day.counted}
                try:
                    count = self._fold_readable(table, folder, counted, footers)
                except TraceError as error:
                    self._note(f"not merged: {folder}: {error}")
            damaged = {}
            if day.superfluous or day.folded:  # is the combined file intact?
                damaged = unread_files([paths[one] for one in day.counted if one.startswith(DAY)])
            for reason in damaged.values():
                self._note(f"skipped: {reason}")
            unread = {os.path.basename(path) for path in damaged}
        ages = {os.path.basename(one.name): self._now_ns - one.modified_ns for one in entries}
        sound = [name for name in day.counted if name.startswith(DAY) and name not in unread]
        old = [name for name in sound if ages[name] >= KEEP_SOURCES_NS]
        settled = frozenset().union(*(footers[name].sources or () for name in old))
        gone = [name for name in day.superfluous if old and ages[name] >= KEEP_SOURCES_NS]
        gone += [name for name in day.folded if name in settled]
        for name in gone:
            self._location.remove(f"{folder}/{name}")
        return count, len(gone)

    def _footers(self, table: FleetTable, paths: Mapping[str, str]) -> dict[str, Footer]:
        found: dict[str, Footer] = {}
        for name, path in paths.items():
            try:
                found[name] = sound_footer(path, table)
            except TraceError as error:
                if os.path.lexists(path):
                    self._note(f"skipped: {error}")
        return found

    def _fold_readable(
        self,
        table: FleetTable,
        folder: str,
        paths: Mapping[str, str],
        footers: Mapping[str, Footer],
    ) -> int:
        """Combine the files that DuckDB can read. Return their number.

        Raises:
            TraceError: no file is readable, or DuckDB cannot merge the rows.
        """
        try:
            self._fold(table, folder, paths, footers)
        except TraceError:
            damaged = unread_files(list(paths.values()))
            sound = {name: path for name, path in paths.items() if path not in damaged}
            if not damaged or not sound:
                raise
            for reason in damaged.values():
                self._note(f"skipped: {reason}")
            self._fold(table, folder, sound, footers)
            return len(sound)
        return len(paths)

    def _fold(
        self,
        table: FleetTable,
        folder: str,
        paths: Mapping[str, str],
        footers: Mapping[str, Footer],
    ) -> None:
        """Write a combined file. Raises TraceError if the rows cannot be merged."""
        its = [footers[name] for name in paths]
        repeated = count_nested_windows(
            ("", window) for footer in its for window in footer.processes
        )
        if repeated:
            self._note(f"{folder}: contains {repeated:,} windows of processes more than once")
        sources = frozenset(paths).union(*(footer.sources or () for footer in its))
        footer = Footer(its[0].service, (), merge_lost(one.lost for one in its), sources)
        name = f"{DAY}{identifier(' '.join(sorted(sources)))}{ENDING}"
        content = pa.BufferOutputStream()
        schema = arrow_schema(table)
        with pq.ParquetWriter(
            content,
            schema.with_metadata(footer.facts()),
            compression="zstd",
            compression_level=COMPRESSION_LEVEL,
            write_page_checksum=True,
        ) as writer:
            for rows in merged_rows(table, list(paths.values())):
                writer.write_table(rows.cast(schema), ROWS_IN_A_GROUP)
        self._location.put(f"{folder}/{name}", content.getvalue().to_pybytes())


def sound_footer(path: str, table: FleetTable) -> Footer:
    """Check a whole file, and return its footer.

    Raises:
        TraceError: a page of the file is damaged, the file has unknown columns, or engines cannot
            open its name.
    """
    refuse_strange_name(path)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            refuse_more_rows_than_bytes(path, file.metadata)
            footer = footer_in_schema(path, file.schema_arrow, table)
            more = sorted(set(file.schema_arrow.names) - set(table.names))
            if more:
                raise TraceError(f"{path}: has the column {more[0]!r} of a newer queryprof")
            for at in range(file.num_row_groups):
                file.read_row_group(at, use_threads=False)
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise TraceError(f"{path}: is damaged: {reason}") from error
    return footer


def _is_compact(entries: Sequence[Entry]) -> bool:
    """Return whether a folder is already compact."""
    return len(entries) == 1 and os.path.basename(entries[0].name).startswith(DAY)


@contextmanager
def _local_paths(location: Location, entries: Sequence[Entry]) -> Iterator[dict[str, str]]:
    """Yield the local path of each file by name. Files in an object store are copied for the
    duration of the block.
    """
    if isinstance(location, Directory):
        yield {os.path.basename(one.name): os.path.join(location.path, one.name) for one in entries}
        return
    with tempfile.TemporaryDirectory(prefix="queryprof-compact-") as folder:
        copies = Directory(folder)
        names = [os.path.basename(entry.name) for entry in entries]
        for name, entry in zip(names, entries, strict=True):
            copies.put(name, location.get(entry.name))
        yield {name: os.path.join(folder, name) for name in names}


def merged_rows(table: FleetTable, paths: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the merged rows of files, one per key, in the sort order of the table.

    If there are many files, they are merged in groups, sorted by host, so that each group leaves
    few rows.

    Raises:
        TraceError: the files cannot be read, or their rows cannot be merged.
    """
    if len(paths) <= FILES_AT_ONCE:
        yield from _merged_at_once(table, paths)
        return
    by_host = sorted(paths, key=lambda path: os.path.basename(path).partition("-")[2])
    with tempfile.TemporaryDirectory(prefix="queryprof-compact-") as folder:
        some = []
        for first in range(0, len(by_host), FILES_AT_ONCE):
            some.append(os.path.join(folder, f"{first}{ENDING}"))
            with pq.ParquetWriter(some[-1], arrow_schema(table), compression="zstd") as writer:
                for rows in _merged_at_once(table, by_host[first : first + FILES_AT_ONCE]):
                    writer.write_table(rows.cast(arrow_schema(table)))
        yield from merged_rows(table, some)


def _merged_at_once(table: FleetTable, paths: Sequence[str]) -> Iterator[pa.Table]:
    rows = sum(map(_most_rows, paths))
    engine = closed_engine(list(paths))
    try:
        for first, last in _split_rows(table, rows):
            values = {"files": list(paths), "first": first, "last": last}
            yield engine.sql(_merging_sql(table), params=values).to_arrow_table()
    except duckdb.Error as error:
        raise TraceError(str(error).partition("\n")[0]) from error
    finally:
        engine.close()


def _most_rows(path: str) -> int:
    """Return the number of rows in a file's metadata, at most one per byte.

    A damaged file may claim more, but a row takes tens of bytes.
    """
    return max(0, min(int(pq.read_metadata(path).num_rows), os.path.getsize(path)))


def _split_rows(table: FleetTable, rows: int) -> list[tuple[str, str]]:
    """Return ranges of statement ids with about ROWS_AT_ONCE rows each.

    The ids are hashes, so equal ranges have about equal numbers of rows.
    """
    count = 1 + rows // ROWS_AT_ONCE if "statement_id" in table.key else 1
    borders = ["", *(f"{at * 16**4 // count:04x}" for at in range(1, count)), ""]
    return list(pairwise(borders))


def _merging_sql(table: FleetTable) -> str:
    """Return the SQL that merges a table's rows. Each column's role decides how its values are
    merged.
    """
    key = ", ".join(table.key)
    order = ", ".join(
        f"{one} NULLS FIRST" for one in [*table.key[len(OWNER) :], *table.key[: len(OWNER)]]
    )
    folds = ", ".join(_fold_of(one) for one in table.columns if one.role != HISTOGRAM)
    id_ = "coalesce(statement_id, '')" if "statement_id" in table.key else "''"
    rows = (
        "SELECT * FROM read_parquet($files, union_by_name = true, hive_partitioning = false)"
        f" WHERE {id_} >= $first AND ($last = '' OR {id_} < $last)"
    )
    lists = [one.name for one in table.columns if one.role == HISTOGRAM]
    if not lists:
        return f"WITH source AS ({rows}) SELECT {folds} FROM source GROUP BY {key} ORDER BY {order}"
    buckets, counts = lists
    matches = " AND ".join(f"sums.{one} IS NOT DISTINCT FROM lists.{one}" for one in table.key)
    shown = ", ".join(
        f"coalesce(lists.{one}, []) AS {one}" if one in lists else f"sums.{one} AS {one}"
        for one in table.names
    )
    return f"""WITH source AS ({rows}),
sums AS (SELECT {folds} FROM source GROUP BY {key}),
single AS (
    SELECT {key}, bucket, CAST(sum(number) AS BIGINT) AS number
    FROM (SELECT {key}, unnest({buckets}) AS bucket, unnest({counts}) AS number FROM source)
    GROUP BY {key}, bucket
),
lists AS (
    SELECT {key}, list(bucket ORDER BY bucket) AS {buckets},
        list(number ORDER BY bucket) AS {counts}
    FROM single GROUP BY {key}
)
SELECT * FROM (SELECT {shown} FROM sums LEFT JOIN lists ON {matches}) ORDER BY {order}"""


def _fold_of(column: FleetColumn) -> str:
    fold = FOLDS[column.role].format(column.name)
    if column.role == SUM and column.kind == INTEGER:
        fold = f"CAST({fold} AS BIGINT)"
    return fold if column.role == KEY else f"{fold} AS {column.name}"
