"""Recognizes a trace, without opening it as a database."""

from __future__ import annotations

import errno
import os
import stat

from queryprof.trace.schema import APPLICATION_ID

MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_OFFSET = 68
"""Of a SQLite file's header (https://www.sqlite.org/fileformat.html#the_database_header)."""


def is_sqlite(path: str) -> bool:
    """Whether the file begins as a SQLite database does. Raises OSError when unreadable."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def is_trace(path: str) -> bool:
    """Whether the file has the header of a trace. Raises OSError when unreadable."""
    with open(path, "rb") as file:
        header = file.read(_APPLICATION_ID_OFFSET + 4)
    number = int.from_bytes(header[_APPLICATION_ID_OFFSET:], "big")
    return header.startswith(MAGIC) and number == APPLICATION_ID


def refuse_odd_companions(path: str) -> None:
    """Raises OSError where SQLite would open something else than a file beside a database: it would
    wait for a pipe for ever.
    """
    for end in ("-journal", "-wal", "-shm"):
        try:
            status = os.stat(path + end)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, f"{os.path.basename(path)}{end} beside it is no file")


def mode_without_changes(path: str) -> str:
    """The mode of a URI with which SQLite reads a database and changes none of its files.

    A write-ahead log is read by the index beside it, as it is. Where there is none no program has
    the database open, and it is read without a lock: with one the index would be made again.
    https://www.sqlite.org/uri.html

    Raises:
        OSError: it cannot be read.
    """
    refuse_odd_companions(path)
    with open(path, "rb") as file:
        has_log = file.read(20)[18:] == b"\x02\x02"
    is_open = any(os.path.exists(path + end) for end in ("-wal", "-shm", "-journal"))
    return f"ro{'' if not has_log else '&readonly_shm=1' if is_open else '&immutable=1'}"


def address(path: str, mode: str = "ro") -> str:
    """The path as a URI for SQLite: also with bytes that are not UTF-8, and never with a host."""
    from urllib.parse import quote

    path = os.path.abspath(path)
    scheme = "file://" if path.startswith("//") else "file:"
    quoted = quote(os.fsencode(path), "/\\:")
    return f"{scheme}{quoted}?mode={mode}"
