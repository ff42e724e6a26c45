"""Attaches to APSW, and to the SQLite that it has for itself.

That SQLite shows its functions to its extensions alone: so it loads the core as one, on a
connection of ours. Connections that were open before are measured, but their counters are unknown.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.recorder import muted
from queryprof.errors import DriverError
from queryprof.hooks.driver import Probes, described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

ENTRY_POINT = "qp_sqlite_extension"

METHODS = {
    "Cursor": {
        "execute": "execute",
        "executemany": "executemany",
        "fetchone": "fetchone",
        "fetchall": "fetchall",
        "__next__": "next",
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
        "read": "blob read", "readall": "blob read", "read_into": "blob read",
        "readinto": "blob read", "write": "blob write",
    },
}  # fmt: skip


class ApswDriver:
    """The probes on APSW, and its SQLite's counters.

    Attributes:
        counters_off: why they are unknown, or None: they are on.
    """

    module = "apsw"

    def __init__(self) -> None:
        self._probes = Probes()
        self.counters_off: str | None = "not attached"

    def attach(self, apsw: ModuleType) -> None:
        """Patches the types; all of them or none. Its SQLite is counted beside that of sqlite3, which is
        imported.

        Raises:
            DriverError: a type is missing.
        """
        import _sqlite3  # noqa: F401

        self.counters_off = self._start_counters(apsw)
        try:
            for name, methods in METHODS.items():
                owner = getattr(apsw, name, None)
                if owner is None:
                    raise DriverError(f"{described(apsw)} has no {name}; too old, or too new?")
                self._probes.attach(owner, methods, is_told=True)
        except BaseException:
            self.detach()
            raise

    def detach(self) -> None:
        """Puts the types back."""
        self._probes.detach()
        _core.counters_stop_private()

    def _start_counters(self, apsw: ModuleType) -> str | None:
        try:
            with muted():
                connection = apsw.Connection(":memory:")
                connection.enable_load_extension(True)
                connection.load_extension(_core.__file__, ENTRY_POINT)
                connection.close()
        except Exception as error:
            return f"APSW's SQLite does not load the core: {error}"
        return _core.counters_start_private()
