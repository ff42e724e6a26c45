"""Reads a file whose name is given or found: one that may never end, or wait for a writer,
is none.
"""

from __future__ import annotations

import os
import stat

UNDISTURBED = os.O_RDONLY
"""How such a file is opened: with those of these flags that the system has."""

for _flag in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    UNDISTURBED |= getattr(os, _flag, 0)


def what_is(found: os.stat_result) -> str:
    """What is in a regular file's place."""
    return "is a directory" if stat.S_ISDIR(found.st_mode) else "is no file"


def content_of(path: str, bytes_: int = -1) -> bytes:
    """The content of a regular file, or so many bytes of it.

    Raises:
        OSError: it cannot be read, or is none.
    """
    handle = os.open(path, UNDISTURBED)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(what_is(os.fstat(handle)))
        return file.read(bytes_)
