"""Reads a file whose name is given or found: one that may never end, or wait for a writer, is none."""

from __future__ import annotations

import os
import stat


def content_of(path: str, most_bytes: int | None = None) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: it cannot be read, is none, or has more bytes.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError("is no file")
        if most_bytes is not None and facts.st_size > most_bytes:
            raise OSError(f"has more than {most_bytes:,} bytes")
        return file.read()
