"""asyncpg, whose interface is its own: a query returns its rows, and a prepared statement knows its
text.

What is private in it is attached to where nothing public has the figure: a cursor's rows come in
portions, and a pool connects by the module inside. Transactions are statements that it executes.
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
    """Keeps the probes on asyncpg."""

    def __init__(self, module: str) -> None:
        del module  # there is one
        super().__init__(ASYNCPG)
