"""What the process, or one thread of it, has read and written, as Linux counts it
(proc_pid_io(5)).
"""

from __future__ import annotations

PROCESS = "/proc/self/io"
THREAD = "/proc/thread-self/io"


def read_io(path: str) -> tuple[int, int] | None:
    """Bytes through calls that read, and through calls that write, so far; from and to the page
    cache too. None where the system does not count them.

    Args:
        path: PROCESS, or THREAD for the calling thread.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            fields = file.read(1000).split()
    except OSError:
        return None
    return (int(fields[1]), int(fields[3])) if fields[:1] == [b"rchar:"] else None
