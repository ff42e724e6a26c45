"""Access to the sqlite3* of a standard sqlite3 connection, and to SQLite's C functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from queryprof.confined.authorizer import DENY

AUTHORIZER = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
)


class SqliteLibrary:
    """The SQLite library of this Python's sqlite3. The process may have loaded another SQLite."""

    def __init__(self) -> None:
        """Load the library. Raises OSError, AttributeError or ImportError if the library is not
        accessible.
        """
        import _sqlite3
        import sqlite3

        connection = sqlite3.connect(":memory:")
        try:
            for name in (None, getattr(_sqlite3, "__file__", None)):
                self.functions: Any = ctypes.CDLL(name)
                try:
                    self.functions.sqlite3_vfs_find.restype = ctypes.c_void_p
                    self.connection_pointer(connection)
                except (OSError, AttributeError):
                    continue
                return
        finally:
            connection.close()
        raise OSError("this Python keeps its connections in another way")

    def connection_pointer(self, connection: Any) -> int:
        """Return the sqlite3*, which is the first field of the connection object. The pointer is
        valid while the connection lives.

        Raises:
            OSError: the memory does not begin with a VFS, as a sqlite3 would.
        """
        at = id(connection) + object.__basicsize__
        handle = ctypes.c_void_p.from_address(at).value or 0
        vfs = self.functions.sqlite3_vfs_find(None)
        if not handle or ctypes.c_void_p.from_address(handle).value != vfs:
            raise OSError("this Python keeps its connections in another way")
        return handle

    def set_authorizer(
        self, connection: Any, authorizer: Callable[[int, str | None, str | None], int]
    ) -> object:
        """Set an authorizer directly in SQLite, so that the connection's Python object has no
        callback.

        Recordings read neither plans nor counters on connections with a callback of the program.

        Returns:
            An object that must live as long as the connection.
        """

        def authorize(
            _: int, action: int, first: bytes | None, second: bytes | None, *_at: Any
        ) -> int:
            try:
                return authorizer(action, _decode_text(first), _decode_text(second))
            except BaseException:  # ctypes would print the exception and allow the action
                return DENY

        kept = AUTHORIZER(authorize)
        set_authorizer = self.functions.sqlite3_set_authorizer
        set_authorizer.argtypes = [ctypes.c_void_p, AUTHORIZER, ctypes.c_void_p]
        if set_authorizer(self.connection_pointer(connection), kept, None):
            raise OSError("SQLite accepts no authorizer")
        return kept


def _decode_text(given: bytes | None) -> str | None:
    return None if given is None else given.decode("utf-8", "replace")
