"""Where a trace may be written: what is at its path already.

Only a regular file that is a trace, or empty, is ever replaced, and not while a process may be
writing to it; of a symbolic link to one, the link. A device, a pipe, a directory or a file of
another kind stays as it is. The null device means that no trace is written.
"""

from __future__ import annotations

import os
import stat

from queryprof.errors import TraceError

JOURNAL = "-journal"
JOURNAL_START = bytes.fromhex("d9d505f920a163d7")
"""Zeros instead: the journal was committed."""

LONGEST_NAME = 255
"""Bytes of a file's name (NAME_MAX of Linux)."""

STARTED_LATER_S = 2.0
"""A process that started this much later than the recording is another one with the same id."""


def is_null(path: str) -> bool:
    """Whether the path leads to the null device (/dev/null)."""
    try:
        status = os.stat(path)
        return stat.S_ISCHR(status.st_mode) and status.st_rdev == _null_number()
    except (OSError, ValueError):
        return False


def refuse_to_replace(path: str) -> None:
    """Raises TraceError when the file at `path` must stay: all but a trace or an empty file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot be written: {error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise TraceError(f"{path}: exists and is no regular file; choose another name")
    from queryprof.trace.header import is_trace

    try:
        is_ours = not status.st_size or is_trace(path)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if not is_ours:
        raise TraceError(f"{path}: exists and is not a queryprof trace; choose another name")


def refuse_no_directory(path: str) -> None:
    """Raises TraceError when the directory of `path` is not there."""
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        raise TraceError(f"{path}: cannot be written: there is no directory {directory}")


def make_room(path: str, replaces: bool = True) -> str:
    """Removes an old trace at `path` and returns the path; while another process writes to it, it
    stays, and the path with this process's id in its name is returned.

    Args:
        replaces: False: none is written there (a recording in windows), and an old one stays.

    Raises:
        TraceError: the file is no trace.
    """
    refuse_to_replace(path)
    if not replaces:
        return path
    if is_written(path):
        return beside(path)
    if os.path.isfile(path) and not os.path.getsize(path):
        return path  # another process may have made it just now: see `retry`
    _refuse_to_remove_journal(path + JOURNAL)
    for leftover in (path, path + JOURNAL):
        try:
            if stat.S_IFMT(os.lstat(leftover).st_mode) in (stat.S_IFREG, stat.S_IFLNK):
                os.unlink(leftover)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise TraceError(f"{leftover}: cannot be removed: {error.strerror}") from error
    return path


def _refuse_to_remove_journal(path: str) -> None:
    """Raises TraceError when the file is no rollback journal
    (https://www.sqlite.org/fileformat.html#the_rollback_journal), which a killed process leaves.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return
        with open(path, "rb") as file:
            start = file.read(len(JOURNAL_START))
    except OSError:
        return
    if start not in (b"", JOURNAL_START, bytes(len(JOURNAL_START))):
        raise TraceError(f"{path}: exists and is no journal of a trace; choose another name")


def retry(path: str, since_unix_ns: int, pid: int | None = None) -> str:
    """Where to make a trace when there is a file at `path`: there, if the file has been empty
    since before the time given, and is removed; else beside it.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return path  # it has gone again
    if stat.S_ISREG(status.st_mode) and not status.st_size and status.st_mtime_ns < since_unix_ns:
        os.unlink(path)
        return path
    return beside(path, pid)


def beside(path: str, pid: int | None = None) -> str:
    """The path with a process's id (this one's) before its extension, and a number where that is
    taken.
    """
    name, number = with_process(path, pid), 1
    while os.path.lexists(name):
        number += 1
        name = with_process(path, pid, number)
    return name


def with_process(path: str, pid: int | None = None, number: int = 1) -> str:
    """The path with a process's id (this one's) before its extension, and a number from 2 on; its
    name is cut to what a file system takes.
    """
    directory, name = os.path.split(path)
    stem, extension = os.path.splitext(name)
    ending = f"-{pid or os.getpid()}{f'-{number}' if number > 1 else ''}{extension}"
    room = LONGEST_NAME - len(os.fsencode(ending))
    return os.path.join(directory, os.fsdecode(os.fsencode(stem)[: max(room, 1)]) + ending)


def without_process(path: str) -> str:
    """The path of the first process's trace, for that of another one, which ends in its id."""
    directory, name = os.path.split(path)
    stem, extension = os.path.splitext(name)
    first, _, pid = stem.rpartition("-")
    return os.path.join(directory, first + extension) if first and pid.isdecimal() else path


def is_written(path: str) -> bool:
    """Whether a process may still be writing to the trace at `path`: one that runs here, or one of
    another host, a container too, whose end is not recorded.
    """
    from queryprof.region.region_files import has_living_region

    if has_living_region(path):
        return True
    if not os.path.isfile(path) or not os.path.getsize(path):
        return False
    import socket
    import sqlite3

    from queryprof.core.recorder import muted
    from queryprof.trace.header import address, refuse_odd_companions

    with muted():
        try:
            refuse_odd_companions(path)
            connection = sqlite3.connect(address(path), uri=True, timeout=0)
            try:
                rows = connection.execute(
                    "SELECT host, pid, start_unix_ns FROM process WHERE NOT clean_end"
                ).fetchall()
            finally:
                connection.close()
        except OSError:
            return False
        except sqlite3.Error as error:
            return "locked" in str(error)  # by a flush; an unreadable file is not being written
    here = socket.gethostname()
    return any(host != here or _runs(pid, start_ns / 1e9) for host, pid, start_ns in rows)


def _runs(pid: int, recorded_at_s: float) -> bool:
    """Whether the process that recorded from then on still runs."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # it runs, as another user
    except (OSError, OverflowError):
        return False
    started_s = _started_unix_s(pid)
    return started_s is None or started_s < recorded_at_s + STARTED_LATER_S


def _started_unix_s(pid: int) -> float | None:
    """When a process started (proc_pid_stat(5)); None: unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/stat", "rb") as file:
            boot_s = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return boot_s + ticks / os.sysconf("SC_CLK_TCK")


def _null_number() -> int:
    try:
        return os.stat(os.devnull).st_rdev
    except OSError:
        return os.makedev(1, 3)
