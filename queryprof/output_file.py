"""Write the files that people name for reports.

A file is written completely or not at all. A command replaces only a file of its own kind, which
has a mark near its beginning or end. It never replaces or follows a symbolic link.
"""

from __future__ import annotations

import glob
import os
import stat
import tempfile
from contextlib import suppress

from queryprof.errors import QueryprofError

MARKED_BYTES = 200
"""Number of bytes, at both ends of a file, in which to look for a mark."""


def beside(given: str, suffix: str) -> str:
    """Return the path of an output file next to a given trace or directory of traces.

    Raises:
        QueryprofError: `given` is a pattern.
    """
    if os.path.isdir(given):
        return f"{os.path.abspath(given)}{suffix}"
    if glob.has_magic(given) and not os.path.lexists(given):
        raise QueryprofError(f"{given}: is a pattern; use -o to name the output file")
    return f"{os.path.splitext(given)[0]}{suffix}"


def refuse_other_file(path: str, mark: bytes) -> None:
    """Raise QueryprofError if there is a file that the caller must not replace.

    Args:
        mark: bytes that a file of the same kind contains; empty if it has none.
    """
    try:
        facts = os.lstat(path)
        if _is_stream(path):
            return
        if stat.S_ISREG(facts.st_mode) and (not facts.st_size or _has(path, facts.st_size, mark)):
            return
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise QueryprofError(f"{path}: cannot be written: {reason}") from error
    if stat.S_ISDIR(facts.st_mode):
        raise QueryprofError(f"{path}: is a directory; choose another name")
    what = "is a symbolic link" if stat.S_ISLNK(facts.st_mode) else _what(mark)
    raise QueryprofError(f"{path}: {what}; delete it, or choose another name")


def write_output(path: str, content: bytes, mark: bytes) -> None:
    """Write a file that only its owner can read.

    It replaces the old file at once, through a temporary file. Devices and pipes are written
    directly.

    Raises:
        QueryprofError: see `refuse_other_file`, or the file cannot be written.
    """
    refuse_other_file(path, mark)
    beside = ""
    try:
        if _is_stream(path):
            # Fail on a pipe without a reader, instead of waiting.
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.set_blocking(handle, True)
            with open(handle, "wb") as stream:
                stream.write(content)
            return
        number, beside = tempfile.mkstemp(prefix=".queryprof-", dir=os.path.dirname(path) or ".")
        with open(number, "wb") as output:
            output.write(content)
        os.replace(beside, path)
    except BaseException as error:
        if beside:
            with suppress(OSError):
                os.unlink(beside)
        if isinstance(error, BrokenPipeError) or not isinstance(error, OSError | ValueError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise QueryprofError(f"{path}: cannot be written: {reason}") from error


def _is_stream(path: str) -> bool:
    """Return whether a path is a device or a pipe, so that writing replaces nothing.

    Links do not count, except the system's own (/dev/stdout).
    """
    try:
        is_systems = os.path.dirname(os.path.abspath(path)) in ("/dev", "/dev/fd", "/proc/self/fd")
        mode = os.stat(path, follow_symlinks=is_systems).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _has(path: str, size: int, mark: bytes) -> bool:
    if not mark:
        return False
    with open(path, "rb") as file:
        first = file.read(MARKED_BYTES)
        file.seek(max(0, size - MARKED_BYTES))
        return mark in first or mark in file.read(MARKED_BYTES)


def _what(mark: bytes) -> str:
    return "already exists, and is another kind of file" if mark else "already exists"
