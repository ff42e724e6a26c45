"""Find the Parquet files of a fleet, and check which files can be read.

Names in a footer are only compared, and never used as paths, because they are not trusted.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from queryprof.errors import TraceError
from queryprof.fleet.days import counted_files
from queryprof.fleet.footer import SCHEMA_KEY, footer_in, merge_lost
from queryprof.fleet.location import files_below
from queryprof.fleet.parquet_files import ENDING, UNREADABLE, arrow_schema
from queryprof.fleet.schema import FLEET_TABLES, SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from queryprof.fleet.footer import Footer, Lost
    from queryprof.fleet.schema import FleetTable

PATTERN = frozenset("*?[]")
"""Characters that make engines treat a path as a pattern."""


class Place(NamedTuple):
    """A directory with a fleet's files, or with copies of them.

    Attributes:
        name: the path or URL.
        files: the paths of the files, by table.
        left_out: one line for each file that cannot be read.
    """

    name: str
    files: Mapping[str, Iterable[str]]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Store:
    """The files of a fleet.

    Attributes:
        files: the paths to read, by table and service.
        left_out: one line for each file that was skipped.
        repeated: number of process windows that occur in several files. Results count them several
            times.
        lost: number of windows that are in no file, because a process kept only its latest windows,
            or because the store was unavailable for too long.
    """

    files: Mapping[str, Mapping[str, list[str]]]
    left_out: tuple[str, ...]
    repeated: int
    lost: int

    @property
    def paths(self) -> list[str]:
        """The paths of all files to read."""
        return [path for some in self.files.values() for paths in some.values() for path in paths]

    def without(self, reasons: Mapping[str, str]) -> Store:
        """Return a copy of the store without some files.

        Args:
            reasons: the reason for each omitted file, by path.
        """
        files = {
            table: {
                service: kept
                for service, paths in some.items()
                if (kept := [path for path in paths if path not in reasons])
            }
            for table, some in self.files.items()
        }
        return replace(self, files=files, left_out=(*self.left_out, *reasons.values()))

    @property
    def services(self) -> list[str]:
        """The names of the services."""
        return sorted({service for some in self.files.values() for service in some})


def directory_place(directory: str) -> Place:
    """Return the files of a directory. Raises TraceError if query engines cannot open its name."""
    refuse_strange_name(directory)
    left_out: list[str] = []
    files = {
        table.name: [
            path
            for path, _ in files_below(os.path.join(directory, table.name), left_out.append)
            if path.endswith(ENDING)
        ]
        for table in FLEET_TABLES
    }
    return Place(directory, files, tuple(left_out))


def read_store(places: Iterable[Place]) -> Store:
    """Read the footers of the files of several places, and return the files to read.

    Raises:
        TraceError: there are no files.
    """
    named = list({os.path.realpath(one.name): one for one in places}.values())
    reading = _Reading()
    for place in named:
        reading.left_out += place.left_out
        for table in FLEET_TABLES:
            reading.add(table, place.files.get(table.name, ()))
    if not reading.files["aggregate"]:
        why = f"; skipped: {reading.left_out[0]}" if reading.left_out else ""
        raise TraceError(
            f"{', '.join(one.name for one in named)}: no fleet data; create it with"
            f' "queryprof fleet export -o DIR"{why}'
        )
    return reading.store()


class _Reading:
    """Collects files and their footers."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, list[str]]] = {table.name: {} for table in FLEET_TABLES}
        self.left_out: list[str] = []
        self._windows: list[tuple[str, str]] = []
        self._lost: list[Lost] = []

    def add(self, table: FleetTable, paths: Iterable[str]) -> None:
        """Add files of a table, except files whose rows are in a combined file."""
        folders: dict[str, dict[str, Footer]] = {}
        for path in paths:
            try:
                folder, name = os.path.split(path)
                folders.setdefault(folder, {})[name] = footer_of(path, table)
            except TraceError as error:
                # a missing file was just deleted, and its rows are in another file
                if os.path.lexists(path):
                    self.left_out.append(str(error))
        for folder, footers in folders.items():
            sources = {name: footer.sources for name, footer in footers.items()}
            for name in counted_files(sources):
                self._add(table, os.path.join(folder, name), footers[name])

    def _add(self, table: FleetTable, path: str, footer: Footer) -> None:
        self.files[table.name].setdefault(footer.service, []).append(path)
        if table.name == "aggregate":
            self._windows += [(footer.service, one) for one in footer.processes]
            self._lost.append(footer.lost)

    def store(self) -> Store:
        """Return the result."""
        repeated = count_nested_windows(self._windows)
        lost = merge_lost(self._lost)
        count = sum(lost.processes.values()) + lost.files
        return Store(self.files, tuple(self.left_out), repeated, count)


def count_nested_windows(windows: Iterable[tuple[str, str]]) -> int:
    """Count the windows inside another window of the same process. The calls of such a window are
    in both windows.

    A small overlap of consecutive windows does not count, because the last call of a window can end
    after the next window has begun.

    Args:
        windows: pairs of a service and a window in the form of Footer.processes.
    """
    found: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for service, text in windows:
        window = json.loads(text)
        if isinstance(window, list) and len(window) == 5 and {*map(type, window[1:])} == {int}:
            *process, start, end = window
            found.setdefault((service, *map(str, process)), []).append((start, end))
    count = 0
    for some in found.values():
        last: tuple[int, int] | None = None
        for window in sorted(some):
            count += last is not None and (window[0] == last[0] or window[1] <= last[1])
            last = window if last is None or window[1] > last[1] else last
    return count


def refuse_strange_name(path: str) -> None:
    """Raise TraceError if query engines cannot open a path, or treat it as a pattern."""
    if PATTERN & set(path):
        raise TraceError(f"{path}: has one of * ? [ ] in its name; rename it: these are wildcards")
    if not path.isascii() and path.encode("utf-8", "replace").decode() != path:
        raise TraceError(f"{path}: its name is not UTF-8, so engines cannot open it")


def footer_of(path: str, table: FleetTable) -> Footer:
    """Return a file's footer.

    Raises:
        TraceError: the file is incomplete, or has another schema version.
    """
    refuse_strange_name(path)
    try:
        metadata = pq.read_metadata(path)
        found = metadata.schema.to_arrow_schema()
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise TraceError(f"{path}: not a complete Parquet file: {reason}") from error
    refuse_more_rows_than_bytes(path, metadata)
    return footer_in_schema(path, found, table)


def refuse_more_rows_than_bytes(path: str, metadata: pq.FileMetaData) -> None:
    """Raise TraceError if a file claims more rows than bytes, and would take far too much memory.

    A compressed row takes tens of bytes.
    """
    groups = (metadata.row_group(at).num_rows for at in range(metadata.num_row_groups))
    rows = max(metadata.num_rows, sum(groups))
    if rows > os.path.getsize(path):
        raise TraceError(f"{path}: has {rows:,} rows, more than it has bytes")


def footer_in_schema(path: str, found: pa.Schema, table: FleetTable) -> Footer:
    """Check a file's Arrow schema, and return its footer. Raises TraceError."""
    facts = found.metadata or {}
    version = facts.get(SCHEMA_KEY, b"").decode("ascii", "replace")
    if version != str(SCHEMA):
        what = f"has schema version {version}" if version else "not written by queryprof"
        raise TraceError(f"{path}: {what}; this queryprof reads version {SCHEMA}")
    expected = arrow_schema(table)
    if len({name.lower() for name in found.names}) < len(found.names):
        raise TraceError(f"{path}: has two columns with the same name")
    wrong = [
        name
        for name in expected.names
        if name not in found.names or _type(found, name) != _type(expected, name)
    ]
    if wrong:
        raise TraceError(f"{path}: its column {wrong[0]} is missing, or of another type")
    return footer_in(facts)


def damaged_files(store: Store) -> dict[str, str]:
    """Find files that have an intact footer, but cannot be read. Return the reason for each by
    path.
    """
    found: dict[str, str] = {}
    for path in store.paths:
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                for _ in file.iter_batches():
                    pass
        except UNREADABLE as error:
            found[path] = f"{path}: is damaged: {str(error).partition(chr(10))[0]}"
    return found


def _type(schema: pa.Schema, name: str) -> str:
    return str(schema.field(name).type).replace("element:", "item:")
