"""The SQLite libraries of the judge (sqlite3 and apsw), with counters of the statements' work.

This module imports only the standard library, and apsw if requested.
"""

from __future__ import annotations

import ctypes
from contextlib import closing
from typing import Any

from queryprof.confined.authorizer import LIMIT_LENGTH, MAX_VALUE_BYTES, Authorizer
from queryprof.confined.handle import SqliteLibrary
from queryprof.confined.several import refuse_several_statements

DB_CACHE_HIT, DB_CACHE_MISS = 7, 8
STATEMENT_VM_STEP, SQLITE_TRACE_PROFILE = 4, 2
"""Constants of sqlite3_db_status, sqlite3_stmt_status and sqlite3_trace_v2."""

Values = Any  # the parameters of a statement: a tuple or a dict


class LibraryCounters:
    """Count the VM steps and page fetches of connections of the standard library's sqlite3."""

    def __init__(self) -> None:
        """Find the functions of the SQLite library. Raises OSError or AttributeError if they are
        missing.
        """
        self._library = SqliteLibrary()
        library = self._library.functions
        self._status, self._next = library.sqlite3_db_status, library.sqlite3_next_stmt
        self._counter = library.sqlite3_stmt_status
        number, pointer = ctypes.c_int, ctypes.POINTER(ctypes.c_int)
        self._status.argtypes = [ctypes.c_void_p, number, pointer, pointer, number]
        self._next.restype, self._next.argtypes = ctypes.c_void_p, [ctypes.c_void_p] * 2
        self._counter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]

    def pages(self, connection: Any) -> int:
        """Return the page fetches since the connection was opened."""
        found = 0
        for what in (DB_CACHE_HIT, DB_CACHE_MISS):
            now, high = ctypes.c_int(), ctypes.c_int()
            self._status(self._library.connection_pointer(connection), what, now, high, 0)
            found += now.value
        return found

    def steps(self, connection: Any) -> int:
        """Return the VM steps of the connection's statements since the last call, and reset the
        counters.
        """
        handle = self._library.connection_pointer(connection)
        found, statement = 0, self._next(handle, None)
        while statement:
            found += self._counter(statement, STATEMENT_VM_STEP, 1)
            statement = self._next(handle, statement)
        return found

    watch = steps


class ApswCounters:
    """Count the VM steps and page fetches of connections of APSW."""

    def __init__(self) -> None:
        self._steps = 0

    def watch(self, connection: Any) -> None:
        def note(event: dict[str, Any]) -> None:
            self._steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

        self._steps = 0
        connection.trace_v2(SQLITE_TRACE_PROFILE, note)

    def pages(self, connection: Any) -> int:
        return sum(connection.status(what)[0] for what in (DB_CACHE_HIT, DB_CACHE_MISS))

    def steps(self, connection: Any) -> int:
        connection.trace_v2(0)
        return self._steps


class Sqlite3Library:
    """The standard library's sqlite3 module."""

    def __init__(self) -> None:
        import sqlite3

        self.module, self.version = sqlite3, sqlite3.sqlite_version
        self.counters: Any = None
        try:
            self.counters = LibraryCounters()
            with closing(self.open(":memory:")) as connection:
                self.counters.pages(connection)
        except (ImportError, OSError, AttributeError, TypeError):
            self.counters = None  # proofs have times, but no counters

    def open(self, name: str) -> Any:
        return self.module.connect(name, uri=True, isolation_level=None, cached_statements=64)

    def copy(self, source: Any, target: Any) -> None:
        source.backup(target, pages=-1)

    def execute(self, connection: Any, sql: str, values: Values = ()) -> Any:
        """Return a cursor with the rows of one statement."""
        return connection.execute(sql, values)

    def refuse_several_statements(self, connection: Any, sql: str, values: Values) -> None:
        """Do nothing, because sqlite3 itself refuses several statements."""

    def set_authorizer(self, connection: Any, authorizer: Authorizer | None) -> None:
        connection.set_authorizer(authorizer)

    def limit_values(self, connection: Any) -> None:
        if hasattr(connection, "setlimit"):  # new in Python 3.11
            connection.setlimit(LIMIT_LENGTH, MAX_VALUE_BYTES)

    def add_function(self, connection: Any, name: str) -> None:
        connection.create_function(name, -1, lambda *_: None, deterministic=True)


class ApswLibrary:
    """APSW, which has its own SQLite."""

    def __init__(self) -> None:
        import apsw

        self.module, self.version = apsw, apsw.sqlite_lib_version()
        self.counters: Any = ApswCounters()
        self._alone: set[str] = set()

    def open(self, name: str) -> Any:
        a = self.module
        flags = a.SQLITE_OPEN_READWRITE | a.SQLITE_OPEN_CREATE | a.SQLITE_OPEN_URI
        return a.Connection(name, flags=flags)

    def copy(self, source: Any, target: Any) -> None:
        with target.backup("main", source, "main") as backup:
            backup.step()

    def execute(self, connection: Any, sql: str, values: Values = ()) -> Any:
        """Return a cursor with the rows of a statement. Raises ValueError for several
        statements.
        """
        self.refuse_several_statements(connection, sql, values)
        return connection.execute(sql, values)

    def refuse_several_statements(self, connection: Any, sql: str, values: Values) -> None:
        """Raise ValueError if a text has several statements, because APSW would execute all of
        them.
        """
        if sql not in self._alone:
            refuse_several_statements(connection, sql, values)
            self._alone.add(sql)

    def set_authorizer(self, connection: Any, authorizer: Authorizer | None) -> None:
        connection.authorizer = authorizer

    def limit_values(self, connection: Any) -> None:
        connection.limit(LIMIT_LENGTH, MAX_VALUE_BYTES)

    def add_function(self, connection: Any, name: str) -> None:
        connection.create_scalar_function(name, lambda *_: None, deterministic=True)
