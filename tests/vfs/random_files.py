"""A program that uses files as programs do, in an order that only its seed decides.

    random_files.py SEED STEPS TOOLS RECORD

TOOLS is the library of tools.c, or "". With RECORD 1, queryprof is installed and uninstalled at
moments that the seed decides; with 0 these steps do nothing. It prints the result of each step, and
leaves its databases in the working directory, so that two runs can be compared.
"""

from __future__ import annotations

import ctypes
import random
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

try:
    import apsw
except ImportError:
    apsw = None  # type: ignore[assignment]

JOURNALS = ("delete", "truncate", "persist", "memory", "wal")
URIS = (
    "",
    "",
    "vfs=unix-none",
    "vfs=unix-dotfile",
    "vfs=unix-excl",
    "nolock=1",
    "cache=shared",
    "psow=0",
    "mode=rwc",
    "mode=memory",
)
TOOLS = ("vfs=copied", "vfs=tabled", "vfs=stacked", "vfs=late")
FILES = 4


class Sqlite3:
    """A connection of the standard library, with the methods that the steps need."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error, sqlite3.Warning, MemoryError)

    def __init__(self, uri: str) -> None:
        self.db = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return self.db.execute(sql, values).fetchall()

    def open_cursor(self, sql: str) -> Any:
        return iter(self.db.execute(sql))

    def blob(self, row: int) -> bytes:
        with self.db.blobopen("t", "b", row) as blob:
            blob.seek(3)
            blob.write(b"blob")
            blob.seek(0)
            return blob.read(10)

    def backup(self, other: Sqlite3) -> None:
        rounds = iter(range(20))

        def progress(_status: int, _left: int, _pages: int) -> None:
            if next(rounds, None) is None:  # it would never end while the source is locked
                raise sqlite3.OperationalError("too long")

        self.db.backup(other.db, pages=7, sleep=0, progress=progress)

    def close(self) -> None:
        self.db.close()


class Apsw:
    """The same for APSW."""

    errors = (apsw.Error,) if apsw else ()

    def __init__(self, uri: str) -> None:
        flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self.db = apsw.Connection(uri, flags=flags)

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return list(self.db.cursor().execute(sql, values))

    def open_cursor(self, sql: str) -> Any:
        return self.db.cursor().execute(sql)

    def blob(self, row: int) -> bytes:
        with self.db.blob_open("main", "t", "b", row, True) as blob:
            blob.seek(3)
            blob.write(b"blob")
            blob.seek(0)
            return blob.read(10)

    def backup(self, other: Apsw) -> None:
        with other.db.backup("main", self.db, "main") as backup:
            for _ in range(20):
                if not backup.done:
                    backup.step(7)

    def close(self) -> None:
        self.db.close()


class Program:
    """Each public method is a step. The steps make their choices with `chance`."""

    def __init__(self, seed: int, tools: str, is_recorded: bool) -> None:
        self._chance = random.Random(seed)
        self._tools = ctypes.CDLL(tools) if tools else None
        self._is_recorded = is_recorded
        # A file has one driver and one VFS: others would not see its locks.
        self._drivers = [
            Apsw if apsw and self._chance.random() < 0.3 else Sqlite3 for _ in range(FILES)
        ]
        self._uris = [self._chance.choice(URIS + TOOLS * bool(tools)) for _ in range(FILES)]
        self._open: list[tuple[int, Any]] = []
        self._cursors: list[tuple[Any, Any]] = []

    def _connection(self) -> Any:
        if not self._open:
            self.open()
        return self._chance.choice(self._open)[1] if self._open else None

    # -- connections -------------------------------------------------------------------------

    def open(self) -> object:
        number = self._chance.randrange(FILES)
        uri = f"file:{number}.db?{self._uris[number]}"
        if self._drivers[number] is Apsw and "vfs=" in uri and "unix" not in uri:
            uri = f"file:{number}.db"  # the tools belong to the other library
        db = self._drivers[number](uri)
        self._open.append((number, db))
        return db.rows("PRAGMA page_size"), db.rows("PRAGMA journal_mode")

    def close(self) -> object:
        if not self._open:
            return None
        _, db = self._open.pop(self._chance.randrange(len(self._open)))
        self._cursors = [one for one in self._cursors if one[0] is not db]
        return db.close()

    def journal_mode(self) -> object:
        return self._connection().rows(f"PRAGMA journal_mode = {self._chance.choice(JOURNALS)}")

    def pragma(self) -> object:
        return self._connection().rows(
            self._chance.choice(
                (
                    "PRAGMA synchronous = FULL",
                    "PRAGMA synchronous = OFF",
                    "PRAGMA mmap_size = 1000000",
                    "PRAGMA locking_mode = EXCLUSIVE",
                    "PRAGMA locking_mode = NORMAL",
                    "PRAGMA temp_store = FILE",
                    "PRAGMA temp_store = MEMORY",
                    "PRAGMA cache_size = 5",
                    "PRAGMA wal_checkpoint(TRUNCATE)",
                    "PRAGMA integrity_check",
                    "PRAGMA data_version",
                    "PRAGMA secure_delete = ON",
                    "PRAGMA journal_size_limit = 0",
                )
            )
        )

    # -- statements --------------------------------------------------------------------------

    def create(self) -> object:
        return self._connection().rows(
            "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, a, b BLOB)"
        )

    def insert(self) -> object:
        db, size = self._connection(), self._chance.choice((10, 900, 9000))
        for _ in range(self._chance.randrange(1, 5)):
            db.rows("INSERT INTO t (a, b) VALUES (?, zeroblob(?))", (size, size))
        return db.rows("SELECT changes(), total_changes()")

    def update(self) -> object:
        return self._connection().rows("UPDATE t SET a = a + 1 WHERE id % 3 = 0")

    def delete(self) -> object:
        return self._connection().rows("DELETE FROM t WHERE id % 5 = 0")

    def select(self) -> object:
        return self._connection().rows("SELECT count(*), sum(a), sum(length(b)) FROM t")

    def sort(self) -> object:
        return self._connection().rows("SELECT a FROM t ORDER BY a || id, b LIMIT 3")

    def begin(self) -> object:
        how = self._chance.choice(("DEFERRED", "IMMEDIATE", "EXCLUSIVE"))
        return self._connection().rows(f"BEGIN {how}")

    def end(self) -> object:
        return self._connection().rows(self._chance.choice(("COMMIT", "COMMIT", "ROLLBACK")))

    def savepoint(self) -> object:
        return self._connection().rows(
            self._chance.choice(("SAVEPOINT s", "RELEASE s", "ROLLBACK TO s"))
        )

    def attach(self) -> object:
        return self._connection().rows("ATTACH 'other.db' AS other")

    def detach(self) -> object:
        return self._connection().rows("DETACH other")

    def write_other(self) -> object:
        db = self._connection()
        db.rows("CREATE TABLE IF NOT EXISTS other.o (a)")
        db.rows("INSERT INTO other.o SELECT count(*) FROM t")
        return db.rows("SELECT count(*), sum(a) FROM other.o")

    def vacuum(self) -> object:
        return self._connection().rows("VACUUM")

    def temporary(self) -> object:
        db = self._connection()
        db.rows("CREATE TEMP TABLE IF NOT EXISTS w AS SELECT * FROM t")
        return db.rows("SELECT count(*) FROM w")

    def blob(self) -> object:
        return self._connection().blob(self._chance.randrange(1, 5))

    def backup(self) -> object:
        number, db = self._chance.choice(self._open) if self._open else (0, None)
        if db is None:
            return None
        other = self._drivers[number](":memory:")
        db.backup(other)
        found = other.rows("SELECT count(*) FROM sqlite_schema")
        other.close()
        return found

    def open_cursor(self) -> object:
        db = self._connection()
        self._cursors.append((db, db.open_cursor("SELECT id, a FROM t ORDER BY id")))
        return None

    def read_cursor(self) -> object:
        if not self._cursors:
            return None
        return next(self._chance.choice(self._cursors)[1], "the end")

    def drop_cursors(self) -> object:
        self._cursors.clear()
        return None

    # -- tools and queryprof -----------------------------------------------------------------

    def tools(self) -> object:
        return self._tools.tools(0) if self._tools else None

    def tools_as_default(self) -> object:
        return self._tools.tools(1) if self._tools else None

    def tools_gone(self) -> object:
        return self._tools.tools_gone() if self._tools else None

    def tool_calls(self) -> object:
        return self._tools.tool_calls() if self._tools else None

    def install(self) -> object:
        if self._is_recorded:
            import queryprof

            queryprof.install("/dev/null")
        return None

    def uninstall(self) -> object:
        if self._is_recorded:
            import queryprof

            queryprof.uninstall()
        return None


RARE = (
    "tools_as_default",
    "tools_gone",
    "vacuum",
    "backup",
    "attach",
    "detach",
    "close",
    "tools",
    "install",
    "uninstall",
    "journal_mode",
)
STEPS = [name for name in vars(Program) if not name.startswith("_")]


def main(seed: int, steps: int, tools: str, is_recorded: bool) -> None:
    program = Program(seed, tools, is_recorded)
    chosen = random.Random(seed + 1)
    weights = [1 if name in RARE else 3 for name in STEPS]
    errors = (*Sqlite3.errors, *Apsw.errors)
    for number, step in enumerate(chosen.choices(STEPS, weights, k=steps)):
        call: Callable[[], object] = getattr(program, step)
        try:
            print(number, step, call())
        except errors as error:
            print(number, step, type(error).__name__, error)
        except AttributeError as error:  # there is no connection
            print(number, step, error)
    while program._open:
        print(program.close())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "1")
