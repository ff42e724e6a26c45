"""Recognize a trace without opening it as a database."""

from __future__ import annotations

import errno
import os
import stat

from queryprof.trace.schema import APPLICATION_ID

MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_OFFSET = 68
"""Offset in a SQLite file's header (https://www.sqlite.org/fileformat.html#the_database_header)."""


def is_sqlite(path: str) -> bool:
    """Return whether the file begins like a SQLite database. Raises OSError if unreadable."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def is_trace(path: str) -> bool:
    """Return whether the file has the header of a trace. Raises OSError if unreadable."""
    with open(path, "rb") as file:
        header = file.read(_APPLICATION_ID_OFFSET + 4)
    number = int.from_bytes(header[_APPLICATION_ID_OFFSET:], "big")
    return header.startswith(MAGIC) and number == APPLICATION_ID


def refuse_odd_companion_files(path: str) -> None:
    """Raise OSError if a file next to a database is not a regular file.

    SQLite would open the file, and would wait forever for a pipe.
    """
    for end in ("-journal", "-wal", "-shm"):
        try:
            status = os.stat(path + end)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, f"{os.path.basename(path)}{end} is not a regular file")


def read_only_mode(path: str) -> str:
    """Return the URI mode in which SQLite reads a database without changing any file.

    SQLite reads a write-ahead log through the existing index file (-shm). If there is no such file,
    no program has the database open, and SQLite can treat it as immutable. Otherwise, SQLite would
    create the index file. https://www.sqlite.org/uri.html

    Raises:
        OSError: the database cannot be read.
    """
    refuse_odd_companion_files(path)
    with open(path, "rb") as file:
        has_log = file.read(20)[18:] == b"\x02\x02"
    is_open = any(os.path.exists(path + end) for end in ("-wal", "-shm", "-journal"))
    return f"ro{'' if not has_log else '&readonly_shm=1' if is_open else '&immutable=1'}"


def sqlite_uri(path: str, mode: str = "ro") -> str:
    """Return the path as a URI for SQLite. Accepts bytes that are not UTF-8; never names a host."""
    from urllib.parse import quote

    path = os.path.abspath(path)
    scheme = "file://" if path.startswith("//") else "file:"
    quoted = quote(os.fsencode(path), "/\\:")
    return f"{scheme}{quoted}?mode={mode}"
