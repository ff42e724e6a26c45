"""Attach to drivers with their own SQLite: APSW, and drivers with sqlite3's types.

Only an extension can call the functions of a driver's own SQLite. queryprof therefore opens a
connection and loads the core as an extension. Connections opened earlier are measured, but their
counters are unknown.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.recorder import muted
from queryprof.hooks.drivers.driver import Driver, DriverHook, QueryMethod, find_type
from queryprof.hooks.drivers.sqlite3_driver import BLOB_METHODS, CONNECTION_METHODS, CURSOR_METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from queryprof.hooks.drivers.driver import Methods

ENTRY_POINT = "qp_sqlite_extension"

SQLITE3_TYPES: dict[str, Methods] = {
    "Cursor": CURSOR_METHODS,
    "Connection": CONNECTION_METHODS,
    "Blob?": BLOB_METHODS,
}

APSW_TYPES: dict[str, Methods] = {
    "Cursor": {
        "execute": "execute",
        "executemany": "executemany",
        "fetchone": "fetchone",
        "fetchall": "fetchall",
        "__next__": "next",
        "get": QueryMethod("fetchall", "row"),
    },
    "Connection": {
        "__init__": "connect",
        "execute": "execute",
        "executemany": "executemany",
        "__enter__": "begin",
        "__exit__": "exit",
        "close": "close",
        "backup": "backup",
        "blob_open": "blob open",
        "serialize": "serialize",
        "deserialize": "deserialize",
    },
    "Backup": {"step": "backup", "finish": "backup"},
    "Blob": {
        "read": "blob read",
        "readall": "blob read",
        "read_into": "blob read",
        "readinto": "blob read",
        "write": "blob write",
    },
}


class OwnSqliteHook(DriverHook):
    """The probes on a driver with its own SQLite, and the counters of new connections.

    The counters end when sqlite3's counters end, for all drivers.

    Args:
        module: "apsw", or a module like the standard library's _sqlite3.

    Attributes:
        counters_off: why the counters are unknown; None if they are on.
        sqlite_version: version of the driver's SQLite; None if not attached.
    """

    def __init__(self, module: str) -> None:
        types = APSW_TYPES if module == "apsw" else SQLITE3_TYPES
        super().__init__(Driver(module, types, functions={}))
        self._connect = "Connection" if module == "apsw" else "connect"
        self._cursor_type: type | None = None
        self.counters_off: str | None = "not attached"
        self.sqlite_version: str | None = None

    def attach(self, module: ModuleType) -> None:
        """Patch the driver's types; all or none.

        Raises:
            DriverError: a type or function is missing.
        """
        self.counters_off = self._start_counters(module)
        self._cursor_type = find_type(module, "Cursor")  # needed for its count of changed rows
        super().attach(module)
        self.sqlite_version = _sqlite_version(module)

    def _attach(self, owner: type, _name: str, methods: Methods) -> None:
        self.probes.attach(owner, methods, self._cursor_type, has_own_sqlite=True)

    def _start_counters(self, module: ModuleType) -> str | None:
        import _sqlite3  # noqa: F401 the counters need sqlite3's SQLite as well

        try:
            with muted():
                connection = getattr(module, self._connect)(":memory:")
                enable = getattr(connection, "enable_load_extension", None)
                enable = enable or connection.enableloadextension  # APSW's name before 3.43
                enable(True)
                loading = (_core.__file__, ENTRY_POINT)
                connection.cursor().execute("SELECT load_extension(?, ?)", loading).fetchall()
                connection.close()
        except Exception as error:
            return f"its SQLite does not load the core: {error}"
        return _core.counters_start_private()


def _sqlite_version(module: ModuleType) -> str | None:
    """Return the version of a module's SQLite.

    The names differ between sqlite3, APSW, and APSW before 3.43.
    """
    version = getattr(module, "sqlite_version", None)
    function = getattr(module, "sqlite_lib_version", None) or getattr(
        module, "sqlitelibversion", None
    )
    return version or (function() if function else None)
