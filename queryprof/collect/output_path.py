"""Check where a trace may be written, given what is already at its path.

Only a trace or an empty regular file is ever replaced, and not while a process may be writing to
it. If the path is a symbolic link, only the link is replaced. Devices, pipes, directories and other
files stay unchanged. The null device means that no trace is written.
"""

from __future__ import annotations

import os
import stat

from queryprof.errors import TraceError

JOURNAL = "-journal"
JOURNAL_START = bytes.fromhex("d9d505f920a163d7")
"""The first bytes of a rollback journal. After a commit, they are zeros."""

MAX_NAME_BYTES = 255
"""Maximum length of a file name in bytes (NAME_MAX of Linux)."""

STARTED_LATER_S = 2.0
"""A process that started this much later than the recording only reuses the process id."""


def is_null_device(path: str) -> bool:
    """Return whether the path leads to the null device (/dev/null)."""
    try:
        status = os.stat(path)
        return stat.S_ISCHR(status.st_mode) and status.st_rdev == _null_device_number()
    except (OSError, ValueError):
        return False


def refuse_to_replace(path: str) -> None:
    """Raise TraceError if there is a file at `path` that is neither a trace nor empty."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot be written: {error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise TraceError(f"{path}: exists and is not a regular file; choose another name")
    from queryprof.trace.header import is_trace

    try:
        is_ours = not status.st_size or is_trace(path)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if not is_ours:
        raise TraceError(f"{path}: exists and is not a queryprof trace; choose another name")


def refuse_missing_directory(path: str) -> None:
    """Raise TraceError if the directory of `path` does not exist."""
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        raise TraceError(f"{path}: cannot be written: no directory {directory}")


def prepare_output_path(path: str, replaces: bool = True) -> str:
    """Remove an old trace at `path`, and return the path to write to.

    While another process writes to `path`, the trace stays, and the returned path has this
    process's id in its name.

    Args:
        replaces: False for a recording in windows, which writes no file at `path`: an old file
            stays.

    Raises:
        TraceError: the file is not a trace.
    """
    refuse_to_replace(path)
    if not replaces:
        return path
    if is_being_written(path):
        return path_with_pid(path)
    if os.path.isfile(path) and not os.path.getsize(path):
        return path  # another process may have just created the file
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
    """Raise TraceError if the file is not a rollback journal, as killed processes leave.

    (https://www.sqlite.org/fileformat.html#the_rollback_journal)
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return
        with open(path, "rb") as file:
            start = file.read(len(JOURNAL_START))
    except OSError:
        return
    if start not in (b"", JOURNAL_START, bytes(len(JOURNAL_START))):
        raise TraceError(
            f"{path}: exists and is not a trace's journal; choose another name for the trace"
        )


def unused_path(path: str, since_unix_ns: int, pid: int | None = None) -> str:
    """Return another path for a trace if there is a file at `path`.

    An empty file that is older than `since_unix_ns` is removed, and its path is returned.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return path  # the file was removed
    if stat.S_ISREG(status.st_mode) and not status.st_size and status.st_mtime_ns < since_unix_ns:
        os.unlink(path)
        return path
    return path_with_pid(path, pid)


def path_with_pid(path: str, pid: int | None = None) -> str:
    """Return the path with a process's id (default: this process's) before its extension.

    Adds a number if that name is taken.
    """
    name, number = path_with_process(path, pid), 1
    while os.path.lexists(name):
        number += 1
        name = path_with_process(path, pid, number)
    return name


def path_with_process(path: str, pid: int | None = None, number: int = 1) -> str:
    """Return the path with a process's id before its extension, and with `number` if it is above 1.
    Cuts the name to the longest length that file systems accept.
    """
    directory, name = os.path.split(path)
    stem, extension = os.path.splitext(name)
    ending = f"-{pid or os.getpid()}{f'-{number}' if number > 1 else ''}{extension}"
    room = MAX_NAME_BYTES - len(os.fsencode(ending))
    return os.path.join(directory, os.fsdecode(os.fsencode(stem)[: max(room, 1)]) + ending)


def path_without_process(path: str) -> str:
    """Return the path of the first process's trace, given a path that may end in a process id."""
    directory, name = os.path.split(path)
    stem, extension = os.path.splitext(name)
    first, _, pid = stem.rpartition("-")
    return os.path.join(directory, first + extension) if first and pid.isdecimal() else path


def is_being_written(path: str) -> bool:
    """Return whether a process may still be writing to the trace at `path`.

    True if the process runs here. Also true if it ran on another host or in a container, and its
    end is not recorded.
    """
    from queryprof.region.region_files import has_living_region

    if has_living_region(path):
        return True
    if not os.path.isfile(path) or not os.path.getsize(path):
        return False
    import socket
    import sqlite3

    from queryprof.core.recorder import muted
    from queryprof.trace.header import refuse_odd_companion_files, sqlite_uri

    with muted():
        try:
            refuse_odd_companion_files(path)
            connection = sqlite3.connect(sqlite_uri(path), uri=True, timeout=0)
            try:
                rows = connection.execute(
                    "SELECT host, pid, start_unix_ns FROM process WHERE NOT clean_end"
                ).fetchall()
            finally:
                connection.close()
        except OSError:
            return False
        except sqlite3.Error as error:
            # locked by a flush; an unreadable file is not being written
            return "locked" in str(error)
    here = socket.gethostname()
    return any(host != here or _is_running(pid, start_ns / 1e9) for host, pid, start_ns in rows)


def _is_running(pid: int, recorded_at_s: float) -> bool:
    """Return whether a process that started to record at this time still runs."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # the process runs as another user
    except (OSError, OverflowError):
        return False
    started_s = _started_unix_s(pid)
    return started_s is None or started_s < recorded_at_s + STARTED_LATER_S


def _started_unix_s(pid: int) -> float | None:
    """Return when a process started (proc_pid_stat(5)), or None if unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/stat", "rb") as file:
            boot_s = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return boot_s + ticks / os.sysconf("SC_CLK_TCK")


def _null_device_number() -> int:
    try:
        return os.stat(os.devnull).st_rdev
    except OSError:
        return os.makedev(1, 3)
