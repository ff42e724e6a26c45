"""The supported drivers, and drivers that a program names.

SQLite drivers except libsql have separate hooks, which also read SQLite's counters (sqlite3_driver,
own_sqlite).
"""

from __future__ import annotations

from queryprof.errors import DriverError
from queryprof.hooks.drivers.driver import (
    CONNECTION_METHODS,
    CURSOR_METHODS,
    Driver,
    DriverHook,
    QueryMethod,
    find_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from queryprof.hooks.drivers.driver import Methods

_ASYNC_CURSOR = {**CURSOR_METHODS, "__anext__": "next"}
_ASYNC_CONNECTION = {**CONNECTION_METHODS, "connect": "connect", "__aexit__": "exit"}

PSYCOPG = Driver(
    "psycopg",
    {
        "Cursor": CURSOR_METHODS,
        "ServerCursor": CURSOR_METHODS,
        "Connection": {**CONNECTION_METHODS, "connect": "connect"},
        "Transaction": {"__enter__": "begin", "__exit__": "exit"},
        "AsyncCursor": _ASYNC_CURSOR,
        "AsyncServerCursor": _ASYNC_CURSOR,
        "AsyncConnection": _ASYNC_CONNECTION,
        "AsyncTransaction": {"__aenter__": "begin", "__aexit__": "exit"},
    },
    system="postgresql",
)

PSYCOPG2 = Driver(
    "psycopg2",
    {"extensions.cursor": CURSOR_METHODS, "extensions.connection": CONNECTION_METHODS},
    system="postgresql",
)

DUCKDB_FETCHES = dict.fromkeys(
    (
        "arrow",
        "df",
        "fetch_arrow_table",
        "fetch_df",
        "fetchdf",
        "fetchnumpy",
        "pl",
        "tf",
        "to_arrow_table",
        "to_df",
        "to_dicts",
        "torch",
    ),
    "fetchtable",
)
"""Methods that return all rows in another library's format, without the number of rows."""

DUCKDB_CALLS: dict[str, str | QueryMethod] = {
    **CURSOR_METHODS,
    **CONNECTION_METHODS,
    **DUCKDB_FETCHES,
    "begin": "begin",
}
DUCKDB_QUERIES = dict.fromkeys(("sql", "query", "from_query"), "execute")
"""Methods that create a relation, which is executed when its rows are fetched."""

DUCKDB = Driver(
    "duckdb",
    {
        "DuckDBPyConnection": {**DUCKDB_CALLS, **DUCKDB_QUERIES},
        "DuckDBPyRelation": {**CURSOR_METHODS, **DUCKDB_FETCHES, "execute": "execute"},
    },
    {**DUCKDB_CALLS, **DUCKDB_QUERIES, "connect": "connect"},
    system="duckdb",
)

LIBSQL = Driver(
    "libsql",
    {
        "Cursor": {**CURSOR_METHODS, "executescript": "executescript"},
        "Connection": {**CONNECTION_METHODS, "executescript": "executescript"},
    },
    system="sqlite",
)

CLOSING = {"commit": "commit", "rollback": "rollback", "close": "close"}
"""Methods of connections that have no execute(), and that `with` closes."""

PYMYSQL = Driver(
    "pymysql",
    {
        "cursors.Cursor": CURSOR_METHODS,
        "cursors.SSCursor": CURSOR_METHODS,
        "connections.Connection": {**CLOSING, "connect": "connect", "begin": "begin"},
    },
    functions={},
    system="mysql",
)

MYSQLCLIENT = Driver(
    "MySQLdb.connections",  # MySQLdb imports this module when it connects
    {
        "cursors.BaseCursor": CURSOR_METHODS,
        "cursors.CursorStoreResultMixIn": CURSOR_METHODS,
        "cursors.CursorUseResultMixIn": CURSOR_METHODS,
        "Connection": {"__init__": "connect", "begin": "begin"},
        "_mysql.connection": CLOSING,
    },
    functions={},
    system="mysql",
)

ORACLEDB = Driver(
    "oracledb",
    {
        "Cursor": CURSOR_METHODS,
        "Connection": {**CLOSING, "__init__": "connect", "begin": "begin"},
        "AsyncCursor": {**CURSOR_METHODS, "__anext__": "next"},
        "AsyncConnection": CLOSING,
    },
    functions={},
    system="oracle.db",
)

KNOWN = {
    driver.module: driver
    for driver in (PSYCOPG, PSYCOPG2, DUCKDB, LIBSQL, PYMYSQL, MYSQLCLIENT, ORACLEDB)
}

CURSOR_PLACES = ("Cursor", "cursors.Cursor", "cursor.Cursor", "_cursor.Cursor")
CONNECTION_PLACES = (
    "Connection",
    "connections.Connection",
    "connection.Connection",
    "_connection.Connection",
)
"""Usual names, inside the module, of the types that `connect` and `cursor` return."""


class KnownDriverHook(DriverHook):
    """The probes on a driver of KNOWN.

    Args:
        module: a key of KNOWN.
    """

    def __init__(self, module: str) -> None:
        super().__init__(KNOWN[module])


def named_driver(
    module: str, cursors: Sequence[str] | None, connections: Sequence[str] | None
) -> DriverHook:
    """Return a hook for a driver that a program names.

    Args:
        cursors, connections: dotted names of the types in the module; None for the usual names.
    """
    if cursors is None and connections is None:
        return FoundDriverHook(module)
    types: dict[str, Methods] = {
        **dict.fromkeys(cursors or (), CURSOR_METHODS),
        **dict.fromkeys(connections or (), CONNECTION_METHODS),
    }
    return DriverHook(Driver(module, types))


class FoundDriverHook(DriverHook):
    """The probes on a driver known only by its name."""

    def __init__(self, module: str) -> None:
        super().__init__(Driver(module, {}))

    def attach(self, module: ModuleType) -> None:
        """Find the types, and attach to them.

        Raises:
            DriverError: no types have the usual names.
        """
        places = ((CURSOR_PLACES, CURSOR_METHODS), (CONNECTION_PLACES, CONNECTION_METHODS))
        types: dict[str, Methods] = {}
        for names, methods in places:
            name = next((name for name in names if find_type(module, name)), None)
            if name is None:
                raise DriverError(
                    f"{self.module}: no {names[0]} found; pass the types:"
                    f' queryprof.instrument("{self.module}", cursors=[...], connections=[...])'
                )
            types[name] = methods
        self.driver = Driver(self.module, types)
        super().attach(module)
