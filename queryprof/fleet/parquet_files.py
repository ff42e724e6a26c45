"""Write the tables of host windows to Parquet files, in a directory or a store.

    TABLE/service=SERVICE/date=YYYY-MM-DD/HHMM-HOST-IDENTITY.parquet

IDENTITY is a hash of the recorded processes and windows, so exporting a recording twice leaves one
file.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from queryprof.errors import TraceError
from queryprof.fleet.footer import SCHEMA_KEY, Footer, Lost
from queryprof.fleet.location import files_below
from queryprof.fleet.names import identifier
from queryprof.fleet.schema import (
    BUCKETS,
    COUNTS,
    FLEET_TABLES,
    INSTANT,
    INTEGER,
    REAL,
    SCHEMA,
    SMALL,
    TEXT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queryprof.fleet.flat import HostWindow, Row
    from queryprof.fleet.location import Location
    from queryprof.fleet.schema import FleetTable

COMPRESSION_LEVEL = 9
ROWS_IN_A_GROUP = 100_000
ENDING = ".parquet"


MAX_NAME_CHARACTERS = 120
"""Maximum length of a service's or host's name in a path."""

SHARED = (
    "contains several hosts or versions: its spans, plans and findings combine them, so their host"
    " or version is unknown"
)
"""The message about a HostWindow with `is_shared`."""

TYPES = {
    TEXT: pa.string(),
    INTEGER: pa.int64(),
    SMALL: pa.int32(),
    REAL: pa.float64(),
    INSTANT: pa.timestamp("us", "UTC"),
    BUCKETS: pa.list_(pa.int16()),
    COUNTS: pa.list_(pa.int64()),
}


UNREADABLE = (OSError, pa.ArrowException, UnicodeError)
"""Errors that pyarrow raises for damaged files (UnicodeError for damaged column names)."""


def arrow_schema(table: FleetTable) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema([(column.name, TYPES[column.kind]) for column in table.columns])


def folder_of(table: str, service: str, date: str) -> str:
    """Return the folder for a table's files of one day (YYYY-MM-DD)."""
    return f"{table}/service={in_a_path(service)}/date={date}"


def name_of(table: str, window: HostWindow, ending: str = ENDING) -> str:
    """Return the relative path of a table's file."""
    start = datetime.fromtimestamp(window.start_unix_ns / 1e9, UTC)
    folder = folder_of(table, window.service, f"{start:%Y-%m-%d}")
    host = in_a_path(window.host or "several")
    return f"{folder}/{start:%H%M}-{host}-{window.identity}{ending}"


def in_a_path(name: str) -> str:
    """Encode a name for use in a path, as query engines decode it. A long name is cut and gets its
    hash as a suffix.
    """
    encoded, whole = _encoded(name), name
    while len(encoded) > MAX_NAME_CHARACTERS:
        name = name[: MAX_NAME_CHARACTERS * len(name) // len(encoded)]
        encoded = _encoded(name)
    return encoded if name == whole else f"{encoded}~{identifier(whole)}"


def _encoded(name: str) -> str:
    encoded = quote(name, safe="", errors="surrogatepass").replace("~", "%7E")
    return encoded.replace(".", "%2E") if encoded.strip(".") == "" else encoded


def write(location: Location, window: HostWindow, lost_files: int = 0) -> list[str]:
    """Write a file for each table that has rows. Return the paths or URLs of the files.

    Args:
        lost_files: the number of windows that were dropped before this window.

    Raises:
        CannotWriteError: a file cannot be written. Files that were already written stay.
    """
    return [
        location.put(name_of(table.name, window), _content(table, rows, window, lost_files))
        for table in FLEET_TABLES
        if (rows := window.tables.get(table.name))
    ]


def _content(table: FleetTable, rows: Sequence[Row], window: HostWindow, lost_files: int) -> bytes:
    lost = Lost(window.lost_windows, lost_files) if table.name == "aggregate" else Lost()
    footer = Footer(window.service, tuple(map(json.dumps, window.identities)), lost)
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(_escape_texts(values) if column.kind == TEXT else values, TYPES[column.kind])
        for column, values in zip(table.columns, columns, strict=True)
    ]
    content = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=arrow_schema(table).with_metadata(footer.facts())),
        content,
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
        row_group_size=ROWS_IN_A_GROUP,
        write_page_checksum=True,
    )
    found: bytes = content.getvalue().to_pybytes()
    return found


def escape_text(text: str) -> str:
    """Escape lone surrogates, as traces do, because they have no UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _escape_texts(values: tuple[str | None, ...]) -> list[str | None]:
    return [None if value is None else escape_text(value) for value in values]


def refuse_other_schema(directory: str) -> None:
    """Raise TraceError if a directory has files of another schema version or another program."""
    for table in FLEET_TABLES:
        for path, _ in files_below(os.path.join(directory, table.name)):
            found = _schema_of(path) if path.endswith(ENDING) else None
            if found not in (None, SCHEMA):
                version = f"schema version {found}" if found else "no schema version"
                raise TraceError(
                    f"{directory}: contains tables with {version} ({path}), but this queryprof"
                    f" writes version {SCHEMA}; choose another directory"
                )
            if found:
                return


def _schema_of(path: str) -> int | None:
    """Return the schema version of a file; 0 if queryprof did not write it; None if unreadable."""
    try:
        found = pq.read_schema(path).metadata or {}
        return int(found.get(SCHEMA_KEY, 0))
    except UNREADABLE:
        return None
    except ValueError:
        return 0
