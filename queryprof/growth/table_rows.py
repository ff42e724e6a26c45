"""Count the rows of all tables in the SQLite databases that this process has open.

The queries run on the program's own connections, because only these see an open transaction or an
in-memory database.
"""

from __future__ import annotations

import gc
import sys
from contextlib import closing, suppress
from typing import Any

from queryprof.sql.names import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LIKE_SQLITE3 = ("sqlite3", "pysqlite3.dbapi2", "sqlcipher3.dbapi2", "sqlean.dbapi2", "sqlean")
"""Modules whose connections work like those of sqlite3. Most bring their own SQLite."""

TABLES = "SELECT name FROM {}.sqlite_master WHERE type = 'table' AND rootpage > 0"


Counts = dict[tuple[int, str], int]
"""The rows by connection (its id) and table (its name in lower case)."""


def count_table_rows() -> Counts:
    """Return the number of rows of each table. Connections of other threads are skipped."""
    found: Counts = {}
    for connection in _connections():
        with suppress(Exception):  # closed, busy, or of another thread
            found |= {(id(connection), table): n for table, n in _rows_of(connection)}
    return found


def keys_of_tables(several: Sequence[Counts]) -> dict[str, tuple[int, str]]:
    """Map each table's name to its key in the counts.

    If several connections have a table of the same name, choose the table whose rows changed most.
    The other tables may belong to earlier tests.
    """
    keys = sorted({key for counts in several for key in counts})
    changes = {key: _change([counts.get(key, 0) for counts in several]) for key in keys}
    return {key[1]: key for key in sorted(keys, key=lambda key: changes[key])}


def _change(rows: Sequence[int]) -> int:
    return max(rows) - min(rows)


def _connections() -> list[Any]:
    apsw = sys.modules.get("apsw")
    of_apsw = [one for one in apsw.connections() if one is not None] if apsw else []
    found = [sys.modules[name].Connection for name in LIKE_SQLITE3 if name in sys.modules]
    types = tuple(one for one in found if isinstance(one, type))
    return [one for one in gc.get_objects() if isinstance(one, types)] + of_apsw


def _rows_of(connection: Any) -> list[tuple[str, int]]:
    found = []
    for _, schema, _ in _rows(connection, "PRAGMA database_list"):
        for (name,) in _rows(connection, TABLES.format(quoted(schema))):
            if not name.startswith("sqlite_"):
                sql = f"SELECT count(*) FROM {quoted(schema)}.{quoted(name)}"
                found.append((name.lower(), _rows(connection, sql)[0][0]))
    return found


def _rows(connection: Any, sql: str) -> list[Any]:
    """Run a query without the program's cursor and row factories."""
    bases: list[Any] = [one for one in type(connection).__mro__ if one.__module__ in LIKE_SQLITE3]
    if not bases:  # an APSW connection
        return list(connection.cursor().execute(sql))
    with closing(bases[-1].cursor(connection)) as cursor:
        cursor.row_factory = None
        return [tuple(map(_text, row)) for row in cursor.execute(sql).fetchall()]


def _text(value: Any) -> Any:
    """Decode a name that the program's text factory returned as bytes."""
    return value.decode() if isinstance(value, bytes) else value
