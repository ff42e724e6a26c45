"""Read the schema of a program's database from its file, without changing the file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from queryprof.errors import TraceError
from queryprof.model import Index, Schema
from queryprof.trace.header import read_only_mode

INDEXES = (
    "SELECT i.name, m.name, i.\"unique\" OR i.origin != 'c', i.partial FROM sqlite_schema AS m,"
    " pragma_index_list(m.name) AS i WHERE m.type = 'table' ORDER BY m.name, i.seq"
)
SCHEMA_SQL_QUERY = (
    "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY rowid"
)
HAS_STATISTICS = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1' AND type = 'table'"
STATISTICS = "SELECT tbl, idx, stat FROM sqlite_stat1"
KEYS = 'SELECT name, coll, "desc" FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno'
ORDINARY = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
"""Finds ordinary tables. pragma_table_list would prepare each view, and no progress handler can
interrupt this.
"""

FUNCTIONS = frozenset({"count", "like"})
"""SQL functions that the queries in this module call."""

MAX_OBJECTS = 10_000
READING_S = 5.0
COUNTING_S = 0.5
STEPS_BETWEEN_CHECKS = 10_000
BUSY_MS = 200


def read_only_uri(path: str) -> str:
    """Return a URI that opens a database read-only, without changing its files. Raises OSError."""
    return f"{Path(path).absolute().as_uri()}?mode={read_only_mode(path)}"


def read_schema(path: str) -> Schema:
    """Read the schema of a database file, opened read-only.

    Raises:
        TraceError: the file cannot be read, or is not a database.
    """
    if not Path(path).is_file():
        raise TraceError(f"{path}: {'not a file' if Path(path).exists() else 'no such file'}")
    try:
        connection = sqlite3.connect(read_only_uri(path), uri=True, timeout=BUSY_MS / 1000)
        try:
            end_s = time.monotonic() + READING_S
            connection.set_progress_handler(lambda: time.monotonic() > end_s, STEPS_BETWEEN_CHECKS)
            connection.set_authorizer(_authorize_reading)
            indexes = []
            for name, table, unique, partial in connection.execute(INDEXES).fetchall():
                keys = _index_columns(connection, name)
                columns = tuple(column for column, *_ in keys)
                order = tuple((collation, is_descending) for _, collation, is_descending in keys)
                indexes.append(Index(name, table, columns, bool(unique), bool(partial), order))
            created = connection.execute(SCHEMA_SQL_QUERY).fetchmany(MAX_OBJECTS)
            has_statistics = connection.execute(HAS_STATISTICS).fetchone()[0]
            found = connection.execute(STATISTICS).fetchmany(MAX_OBJECTS) if has_statistics else ()
            statistics = tuple(row for row in found if {*map(type, row)} <= {str, type(None)})
            analyzed = {table for table, *_ in statistics if table}
            return Schema(
                path,
                tuple(indexes),
                tuple(sql for (sql,) in created if isinstance(sql, str)),
                statistics,
                _count_rows(connection, analyzed),
            )
        finally:
            connection.close()
    except (sqlite3.Error, OSError, ValueError) as error:
        raise TraceError(why_unreadable(path, str(error))) from error


def _authorize_reading(action: int, what: str | None, inside: str | None, *_: object) -> int:
    """Allow only reads, PRAGMAs, FUNCTIONS, and the declarations by which SQLite makes PRAGMAs
    tables.
    """
    is_reading = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA)
    is_declared = action == sqlite3.SQLITE_UPDATE and what == "sqlite_master"
    is_ours = action == sqlite3.SQLITE_FUNCTION and inside in FUNCTIONS
    return sqlite3.SQLITE_OK if is_reading or is_declared or is_ours else sqlite3.SQLITE_DENY


def _count_rows(connection: sqlite3.Connection, analyzed: set[str]) -> dict[str, int]:
    """Count the rows of analyzed ordinary tables, within COUNTING_S seconds.

    Views are skipped, because counting their rows would execute their SQL.
    """
    end_s = time.monotonic() + COUNTING_S
    connection.set_progress_handler(lambda: time.monotonic() > end_s, STEPS_BETWEEN_CHECKS)
    found: dict[str, int] = {}
    tables = {str(name) for (name,) in connection.execute(ORDINARY).fetchmany(MAX_OBJECTS)}
    for table in sorted(tables & analyzed):
        name = table.replace('"', '""')
        with suppress(sqlite3.Error):
            found[table] = connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
    return found


def why_unreadable(path: str, error: str) -> str:
    """Return a message that explains a SQLite error and suggests a solution."""
    locked = "cannot be read while a program holds its lock; try again"
    open_it = "open the database once with its program"
    reasons = {
        "not a database": "not a SQLite database, or it is encrypted",
        "locked": locked,
        "busy": locked,
        "no such collation": "an index or key uses a collation that the program defines, so its"
        f" rows cannot be found here: {error}",
        "malformed": f"it is damaged ({error}): `PRAGMA integrity_check` shows more",
        "readonly": f"its journal (-journal) holds an unfinished transaction: {open_it}",
    }
    if Path(f"{path}-wal").exists():
        no_index = "its write-ahead log (-wal) has no index file (-shm)"
        reasons["unable to open"] = f"{no_index}: {open_it}"
    found = (reason for words, reason in reasons.items() if words in error)
    return f"{path}: {next(found, f'it cannot be read or copied: {error}')}"


def read_schemas(paths: Iterable[str]) -> dict[str, Schema]:
    """Return the schemas of the databases by path. Missing and unreadable files are skipped."""
    found = {}
    for path in sorted(set(paths)):
        try:
            if path and not path.startswith(":") and Path(path).is_file():
                found[path] = read_schema(path)
        except (TraceError, OSError):
            pass  # the file is gone or locked; findings work without the schema
    return found


def _index_columns(connection: sqlite3.Connection, index: str) -> tuple[tuple[str, str, bool], ...]:
    """Return the columns of an index, each with its collation and whether it is descending."""
    rows = connection.execute(KEYS, (index,)).fetchall()
    return tuple(
        (name if name is not None else "(expression)", str(collation).upper(), bool(is_descending))
        for name, collation, is_descending in rows
    )
