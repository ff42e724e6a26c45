"""Files that people name for reports: each whole or not at all, and none in the place of another's.

A command replaces only what the same command has made, which is known by a mark at the file's
beginning or end, unless with --force. A symbolic link is never followed: with --force it is
replaced itself.
"""

from __future__ import annotations

import glob
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass

from queryprof.errors import QueryprofError

MARKED_BYTES = 200
"""Where a mark is looked for, at both ends of a file."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How a caller replaces a file in spite of what it is, and how it gives another name."""

    force: str
    name: str = ""


COMMANDS = Ways("--force", " with -o")


def beside(given: str, suffix: str) -> str:
    """Where a file about a trace is written, or about all traces of a directory: beside it.

    Raises:
        QueryprofError: a pattern names several traces: there is no place beside it.
    """
    if os.path.isdir(given):
        return f"{os.path.abspath(given)}{suffix}"
    if glob.has_magic(given) and not os.path.lexists(given):
        raise QueryprofError(f"{given}: is a pattern; name the file to write with -o")
    return f"{os.path.splitext(given)[0]}{suffix}"


def refuse_other_file(path: str, mark: bytes, force: bool, ways: Ways = COMMANDS) -> None:
    """Raises QueryprofError: a file is there that must not be replaced.

    Args:
        mark: what a file of the same command has; empty: nothing distinguishes it.
        force: whatever file is there is replaced.
    """
    try:
        facts = os.lstat(path)
        if _is_stream(path) or (force and not stat.S_ISDIR(facts.st_mode)):
            return
        if stat.S_ISREG(facts.st_mode) and (not facts.st_size or _has(path, facts.st_size, mark)):
            return
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise QueryprofError(f"{path}: cannot be written: {reason}") from error
    if stat.S_ISDIR(facts.st_mode):
        raise QueryprofError(f"{path}: is a directory; choose another name{ways.name}")
    what = "is a symbolic link" if stat.S_ISLNK(facts.st_mode) else _what(mark)
    raise QueryprofError(
        f"{path}: {what}; {ways.force} replaces it, or choose another name{ways.name}"
    )


def write_output(
    path: str, content: bytes, mark: bytes, force: bool = False, ways: Ways = COMMANDS
) -> None:
    """Writes a file that its owner alone can read beside its place, and renames it; a device or a
    pipe is written to.

    Raises:
        QueryprofError: see `refuse_other_file`, or it cannot be written.
    """
    refuse_other_file(path, mark, force, ways)
    beside = ""
    try:
        if _is_stream(path):
            # A pipe that is not read from is an error, and not waited for.
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
    """Whether it is a device or a pipe: to write to one replaces nothing. A link to one is no such
    thing, but for the system's own (/dev/stdout).
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
    return "is there, and this command has not made it" if mark else "is there"
