"""asyncpg, which has its own interface: a query method returns the rows, and a prepared statement
stores its text.

Some private functions are measured as well, because no public function has their figures: a cursor
fetches its rows in portions, and a pool connects through an inner module. Transactions need no
probes: they are executed as statements.
"""

from __future__ import annotations

from queryprof.hooks.drivers.driver import Driver, DriverHook, QueryMethod

TEXT = "_query"

ASYNCPG = Driver(
    "asyncpg",
    {
        "connection.Connection": {
            "execute": QueryMethod("execute", "status"),
            "executemany": QueryMethod("executemany", "rows"),
            "fetch": QueryMethod("execute", "rows"),
            "fetchrow": QueryMethod("execute", "row"),
            "fetchval": QueryMethod("execute", "row"),
            "fetchmany": QueryMethod("executemany", "rows"),
            "close": "close",
        },
        "prepared_stmt.PreparedStatement": {
            "executemany": QueryMethod("executemany", "rows", TEXT),
            "fetch": QueryMethod("execute", "rows", TEXT),
            "fetchrow": QueryMethod("execute", "row", TEXT),
            "fetchval": QueryMethod("execute", "row", TEXT),
            "fetchmany": QueryMethod("executemany", "rows", TEXT),
        },
        "cursor.BaseCursor": {
            "_bind": QueryMethod("execute", "portal", TEXT),
            "_bind_exec": QueryMethod("execute", "portal", TEXT),
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
