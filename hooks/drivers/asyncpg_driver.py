"""asyncpg, which has its own interface: a query returns its rows, and a prepared statement knows
its text.

Some figures are not available publicly, so private parts are measured as well: the rows of a cursor
arrive in portions, and a pool connects through the inner module. Transactions are executed
statements.
"""

from __future__ import annotations

from queryprof.hooks.drivers.driver import Driver, DriverHook, Query

TEXT = "_query"

ASYNCPG = Driver(
    "asyncpg",
    {
        "connection.Connection": {
            "execute": Query("execute", "status"),
            "executemany": Query("executemany", "rows"),
            "fetch": Query("execute", "rows"),
            "fetchrow": Query("execute", "row"),
            "fetchval": Query("execute", "row"),
            "fetchmany": Query("executemany", "rows"),
            "close": "close",
        },
        "prepared_stmt.PreparedStatement": {
            "executemany": Query("executemany", "rows", TEXT),
            "fetch": Query("execute", "rows", TEXT),
            "fetchrow": Query("execute", "row", TEXT),
            "fetchval": Query("execute", "row", TEXT),
            "fetchmany": Query("executemany", "rows", TEXT),
        },
        "cursor.BaseCursor": {
            "_bind": Query("execute", "portal", TEXT),
            "_bind_exec": Query("execute", "portal", TEXT),
            "_exec": "fetchmany",
        },
    },
    {"connect_utils._connect": "connect"},
    system="postgresql",
)


class AsyncpgHook(DriverHook):
    """The probes on asyncpg."""

    def __init__(self, module: str) -> None:
        del module  # there is only one such module
        super().__init__(ASYNCPG)
