"""Attaches to APSW, and to the SQLite that it has for itself (own_sqlite.py)."""

from __future__ import annotations

from queryprof.core import _core
from queryprof.errors import DriverError
from queryprof.hooks.driver import Probes, described
from queryprof.hooks.own_sqlite import count_in_own_sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

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
        """Patches the types; all of them or none.

        Raises:
            DriverError: a type is missing.
        """
        self.counters_off = count_in_own_sqlite(lambda: apsw.Connection(":memory:"))
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
