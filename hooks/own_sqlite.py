"""Drivers that have a SQLite for themselves: its counters, and those drivers that are sqlite3 otherwise.

Such a SQLite shows its functions to its extensions alone: so it loads the core as one, on a connection
of ours. Connections that were open before are measured, but their counters are unknown.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.recorder import muted
from queryprof.errors import DriverError
from queryprof.hooks.driver import Probes, described
from queryprof.hooks.sqlite3_driver import BLOB_METHODS, CONNECTION_METHODS, CURSOR_METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

ENTRY_POINT = "qp_sqlite_extension"


def count_in_own_sqlite(connect: Callable[[], Any]) -> str | None:
    """Counts on new connections of a driver; why that cannot be, or None.

    Args:
        connect: makes one, with a database in memory.
    """
    import _sqlite3  # noqa: F401  # beside whose SQLite it is counted

    try:
        with muted():
            connection = connect()
            # APSW had the other name before 3.43.
            for name in ("enable_load_extension", "enableloadextension"):
                if hasattr(connection, name):
                    getattr(connection, name)(True)
                    break
            loading = (_core.__file__, ENTRY_POINT)
            connection.cursor().execute("SELECT load_extension(?, ?)", loading).fetchall()
            connection.close()
    except Exception as error:
        return f"the driver's SQLite does not load the core: {error}"
    return _core.counters_start_private()


class OwnSqliteDriver:
    """The probes on a driver with the types of sqlite3, and its SQLite's counters.

    Attributes:
        counters_off: why they are unknown, or None: they are on.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self._probes = Probes()
        self.counters_off: str | None = "not attached"

    def attach(self, module: ModuleType) -> None:
        """Patches the types; all of them or none.

        Raises:
            DriverError: a type is missing.
        """
        self.counters_off = count_in_own_sqlite(lambda: module.connect(":memory:"))
        types = {"Cursor": CURSOR_METHODS, "Connection": CONNECTION_METHODS, "Blob": BLOB_METHODS}
        try:
            for name, methods in types.items():
                owner = getattr(module, name, None)
                if owner is not None:
                    self._probes.attach(owner, methods, module.Cursor, is_told=True)
                elif name != "Blob":  # which came later
                    raise DriverError(f"{described(module)} has no {name}; too old, or too new?")
        except BaseException:
            self.detach()
            raise

    def detach(self) -> None:
        """Puts the types back."""
        self._probes.detach()
        _core.counters_stop_private()


def pysqlite3_driver() -> OwnSqliteDriver:
    return OwnSqliteDriver("pysqlite3._sqlite3")


def sqlcipher3_driver() -> OwnSqliteDriver:
    return OwnSqliteDriver("sqlcipher3._sqlite3")


def sqlean_driver() -> OwnSqliteDriver:
    return OwnSqliteDriver("sqlean._sqlite3")
