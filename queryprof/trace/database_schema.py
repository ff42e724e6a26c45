"""The schema of a program's database, read from its file without a change to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from queryprof.errors import TraceError
from queryprof.model import Index, Schema

INDEXES = (
    "SELECT i.name, m.name, i.\"unique\" OR i.origin != 'c', i.partial FROM sqlite_schema AS m,"
    " pragma_index_list(m.name) AS i WHERE m.type = 'table' ORDER BY m.name, i.seq"
)
BUSY_MS = 200


def read_schema(path: str) -> Schema:
    """The schema of a database file, opened read-only.

    Raises:
        TraceError: it cannot be read, or is no database.
    """
    if not Path(path).is_file():
        raise TraceError(f"{path}: its schema cannot be read: there is no such file")
    try:
        in_use = any(Path(path + end).exists() for end in ("-wal", "-journal"))
        # Without them no lock is taken and no file made: a write-ahead log's index would be one.
        how = "mode=ro" if in_use else "mode=ro&immutable=1"
        connection = sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?{how}", uri=True, timeout=BUSY_MS / 1000
        )
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
        raise TraceError(f"{path}: its schema cannot be read: {error}") from error


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
