"""Read files from given or found names.

Files that could block or never end, such as pipes and devices, are refused.
"""

from __future__ import annotations

import os
import stat

UNDISTURBED = os.O_RDONLY
"""Flags to open a given file; not every system has all of them."""

for _flag in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    UNDISTURBED |= getattr(os, _flag, 0)


def what_is(found: os.stat_result) -> str:
    """Describe a path that is not a regular file."""
    return "is a directory" if stat.S_ISDIR(found.st_mode) else "is not a regular file"


def content_of(path: str, bytes_: int = -1) -> bytes:
    """Return the content of a regular file, or its first `bytes_` bytes.

    Raises:
        OSError: the file cannot be read, or is not regular.
    """
    handle = os.open(path, UNDISTURBED)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(what_is(os.fstat(handle)))
        return file.read(bytes_)
