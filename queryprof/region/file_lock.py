"""Lock a file, so that only one process reads and removes a recording."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike


def lock_file(file: FileDescriptorLike) -> bool:
    """Lock an open file without waiting. Return False if another process holds its lock.

    Some containers and network file systems have no locks. There, nothing is locked, and the result
    is True: no other process can hold the lock either.
    """
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
