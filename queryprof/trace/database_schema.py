"""The schema of a program's database, read from its file without a change to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from queryprof.errors import TraceError
from queryprof.model import Index, Schema
from queryprof.trace.header import mode_without_changes

INDEXES = (
    "SELECT i.name, m.name, i.\"unique\" OR i.origin != 'c', i.partial FROM sqlite_schema AS m,"
    " pragma_index_list(m.name) AS i WHERE m.type = 'table' ORDER BY m.name, i.seq"
)
BUSY_MS = 200


def unchanged_uri(path: str) -> str:
    """The URI with which SQLite reads a database and changes none of its files. Raises OSError."""
    return f"{Path(path).absolute().as_uri()}?mode={mode_without_changes(path)}"


def read_schema(path: str) -> Schema:
    """The schema of a database file, opened read-only.

    Raises:
        TraceError: it cannot be read, or is no database.
    """
    if not Path(path).is_file():
        raise TraceError(f"{path}: there is no such file")
    try:
        connection = sqlite3.connect(unchanged_uri(path), uri=True, timeout=BUSY_MS / 1000)
        try:
            indexes = tuple(
                Index(name, table, _columns(connection, name), bool(unique), bool(partial))
                for name, table, unique, partial in connection.execute(INDEXES).fetchall()
            )
            statistics = connection.execute(
                "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'"
            ).fetchone()
            return Schema(path, indexes, bool(statistics[0]))
        finally:
            connection.close()
    except (sqlite3.Error, OSError, ValueError) as error:
        raise TraceError(why_unreadable(path, str(error))) from error


def why_unreadable(path: str, error: str) -> str:
    """What is wrong with a database, and what to do, for what SQLite says of it."""
    if "not a database" in error:
        return f"{path}: it is no SQLite database, or it is encrypted"
    if "locked" in error or "busy" in error:
        return f"{path}: it cannot be read while a program holds its lock: try again"
    if "malformed" in error:
        return f"{path}: it is damaged ({error}): `PRAGMA integrity_check` tells more"
    if "unable to open" in error and Path(f"{path}-wal").exists():
        return (
            f"{path}: its log (-wal) has no index beside it (-shm): open it once with its program"
        )
    return f"{path}: it cannot be read or copied: {error}"


def schemas_of(paths: Iterable[str]) -> dict[str, Schema]:
    """The schemas of the files that are there and can be read."""
    found = {}
    for path in sorted(set(paths)):
        try:
            if path and not path.startswith(":") and Path(path).is_file():
                found[path] = read_schema(path)
        except (TraceError, OSError):
            pass  # it is gone, or locked: findings do without it
    return found


def _columns(connection: sqlite3.Connection, index: str) -> tuple[str, ...]:
    rows = connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,))
    return tuple(name if name is not None else "(expression)" for (name,) in rows.fetchall())
