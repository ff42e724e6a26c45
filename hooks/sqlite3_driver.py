"""Attaches to the standard library's sqlite3: every method by which it reaches the database.

It patches the types of the C module _sqlite3 in place. It knows nothing of what is done with
what is measured.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.hooks import driver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

CURSOR_METHODS = {**driver.CURSOR_METHODS, "executescript": "executescript"}
CONNECTION_METHODS = {
    **driver.CONNECTION_METHODS,
    "__init__": "connect",
    "executescript": "executescript",
    "backup": "backup",
    "blobopen": "blob open",
    "serialize": "serialize",
    "deserialize": "deserialize",
}
BLOB_METHODS = {
    "read": "blob read",
    "write": "blob write",
    "__getitem__": "blob read",
    "__setitem__": "blob write",
}


class Sqlite3Driver:
    """The probes on sqlite3, and SQLite's counters of its connections."""

    name = "sqlite3"

    def __init__(self) -> None:
        self._probes = driver.Probes()
        self.counters_off: str | None = "not attached"
        """Why SQLite's counters are unknown, or None: they are on."""

    def attach(self) -> None:
        """Patches the types; all of them or none. Raises ImportError without _sqlite3."""
        import _sqlite3

        try:
            self._probes.attach(_sqlite3.Cursor, CURSOR_METHODS, _sqlite3.Cursor)
            self._probes.attach(_sqlite3.Connection, CONNECTION_METHODS, _sqlite3.Cursor)
            self._probes.attach(_sqlite3.Blob, BLOB_METHODS)
        except BaseException:
            self.detach()
            raise
        connection = _sqlite3.connect(":memory:")
        self.counters_off = _core.counters_start(library_of(_sqlite3), connection)
        connection.close()

    def detach(self) -> None:
        """Puts every type back as it was."""
        _core.counters_stop()
        self._probes.detach()


def library_of(module: ModuleType) -> str | None:
    """The shared library that leads to the module's SQLite; None: the interpreter itself."""
    return getattr(module, "__file__", None)
