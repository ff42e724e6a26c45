"""Attach to the standard library's sqlite3: every method that reaches the database.

The types of the C module _sqlite3 are patched in place. This module does not depend on the code
that uses the measurements.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.recorder import muted
from queryprof.hooks.drivers import driver
from queryprof.hooks.libraries import SQLITE3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
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
    """The probes on sqlite3, and the counters of its connections.

    Args:
        attached: called with the reason why the counters are unknown, or None if they are on.

    Attributes:
        sqlite_version: version of the module's SQLite; None if not attached.
    """

    module = SQLITE3

    def __init__(self, attached: Callable[[str | None], None]) -> None:
        self._probes = driver.Probes()
        self._attached = attached
        self.sqlite_version: str | None = None

    def attach(self, module: ModuleType) -> None:
        """Patch the types; all or none."""
        try:
            self._probes.attach(module.Cursor, CURSOR_METHODS, module.Cursor)
            self._probes.attach(module.Connection, CONNECTION_METHODS, module.Cursor)
            self._probes.attach(module.Blob, BLOB_METHODS)
            with muted():
                connection = module.connect(":memory:")
                counters_off = _core.counters_start(sqlite_library(module), connection)
                connection.close()
            self.sqlite_version = module.sqlite_version
            self._attached(counters_off)
        except BaseException:
            self.detach()
            raise

    def detach(self) -> None:
        """Restore the types."""
        _core.counters_stop()
        self._probes.detach()


def sqlite_library(module: ModuleType) -> str | None:
    """Return the shared library in which the module's SQLite can be found; None for the
    interpreter.
    """
    return getattr(module, "__file__", None)
