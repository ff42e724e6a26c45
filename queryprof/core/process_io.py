"""Bytes read and written by the process or by one thread, and the process's memory, from Linux
(proc_pid_io(5), proc_pid_limits(5), proc_pid_statm(5)).
"""

from __future__ import annotations

PAGE_BYTES = 4096
"""The smallest page size. With larger pages, the memory in use is underestimated."""

PROCESS = "/proc/self/io"
THREAD = "/proc/thread-self/io"


def read_io_bytes(path: str) -> tuple[int, int] | None:
    """Return the bytes read and written by system calls so far, including the page cache; None if
    the system does not count them.

    Args:
        path: PROCESS, or THREAD for the calling thread.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            fields = file.read(1000).split()
    except OSError:
        return None
    return (int(fields[1]), int(fields[3])) if fields[:1] == [b"rchar:"] else None


def peak_memory_bytes() -> int | None:
    """Return the largest resident set of the process so far (VmHWM in proc_pid_status(5)), or None
    if the system does not report it.
    """
    try:
        with open("/proc/self/status", "rb", buffering=0) as file:
            fields = file.read(4000).partition(b"VmHWM:")[2].split(maxsplit=1)
        return 1024 * int(fields[0]) if fields else None
    except (OSError, ValueError):
        return None


def address_space_left() -> int | None:
    """Return the bytes that the process may still map (`ulimit -v`); None if there is no limit, or
    if the limit is unknown.
    """
    try:
        with open("/proc/self/limits", "rb", buffering=0) as file:
            limits = file.read(4000).partition(b"Max address space")[2].split(maxsplit=1)
        if not limits or not limits[0].isdigit():
            return None
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(limits[0]) - PAGE_BYTES * int(file.read(100).split()[0])
    except (OSError, ValueError, IndexError):
        return None
