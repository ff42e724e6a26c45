"""Find the processes that hold locks on a database's files, in the kernel's list (proc_locks(5)).

This module never opens the database's files, because closing a file would release all locks that
this process holds on the file. SQLite locks single bytes (https://www.sqlite.org/lockingv3.html,
https://www.sqlite.org/walformat.html).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOCKS = "/proc/locks"

PENDING, RESERVED, SHARED = 0x40000000, 0x40000001, 0x40000002
"""Lock bytes of a database file."""

WAL_WRITER, WAL_CHECKPOINT, WAL_RECOVERY, WAL_READERS, WAL_OPEN = 120, 121, 122, 123, 128
"""Lock bytes of the write-ahead log's index file (-shm)."""

WRITES, COMMITS, PENDS, READS, CHECKPOINTS, HAS_OPEN = (
    "has a write transaction open",
    "is writing: no other process can read or write",
    "waits for readers before it writes: no other process can begin to read or write",
    "reads",
    "copies the log into the database (checkpoint)",
    "has it open",
)
ORDER = (COMMITS, PENDS, WRITES, CHECKPOINTS, READS, HAS_OPEN)
"""All lock states, the most exclusive first."""


@dataclass(frozen=True, slots=True)
class LockOwner:
    """A process that holds a lock.

    Attributes:
        pid: 0 if the kernel does not report the process id, because the process runs in another
            container or the lock belongs to an open file description.
        does: the state of the lock in words, an entry of ORDER. command: the command line; empty if
            unreadable.
    """

    pid: int
    does: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _KernelLock:
    pid: int
    is_exclusive: bool
    device: str
    inode: int
    first: int
    last: int

    def covers_byte(self, byte: int) -> bool:
        return self.first <= byte <= self.last


def find_lock_owners(path: str) -> tuple[LockOwner, ...]:
    """Return each process that holds locks on a database, the most exclusive lock first.

    Raises:
        OSError: the kernel's list, or the file, cannot be read.
    """
    locks = list(_read_kernel_locks())
    in_file = _locks_on_file(path, locks)
    in_log = _locks_on_file(f"{path}-shm", locks) if os.path.exists(f"{path}-shm") else []
    found: dict[int, set[str]] = {}
    for lock in in_log:
        found.setdefault(lock.pid, set()).add(_state_in_wal(lock))
    for lock in in_file:
        # With a write-ahead log, a process keeps a lock on the database file while it has the file
        # open.
        does = (
            HAS_OPEN
            if in_log and lock.pid in found and not lock.is_exclusive
            else _state_in_file(lock)
        )
        found.setdefault(lock.pid, set()).add(does)
    owners = [
        LockOwner(max(pid, 0), min(does, key=ORDER.index), _command_line(pid))
        for pid, does in found.items()
    ]
    return tuple(sorted(owners, key=lambda one: (ORDER.index(one.does), one.pid)))


def _state_in_file(lock: _KernelLock) -> str:
    if not lock.is_exclusive:
        return READS
    if lock.covers_byte(SHARED):
        return COMMITS
    return PENDS if lock.covers_byte(PENDING) else WRITES


def _state_in_wal(lock: _KernelLock) -> str:
    if lock.is_exclusive and lock.covers_byte(WAL_WRITER):
        return WRITES
    if lock.is_exclusive and (lock.covers_byte(WAL_CHECKPOINT) or lock.covers_byte(WAL_RECOVERY)):
        return CHECKPOINTS
    return READS if WAL_READERS <= lock.first < WAL_OPEN else HAS_OPEN


def _locks_on_file(path: str, locks: list[_KernelLock]) -> list[_KernelLock]:
    """Return the locks on a file. On a layered file system, stat and the kernel's list report
    different devices, so the inode alone must match.
    """
    status = os.stat(path)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    of_inode = [lock for lock in locks if lock.inode == status.st_ino]
    return [lock for lock in of_inode if lock.device == device] or of_inode


def _read_kernel_locks() -> Iterator[_KernelLock]:
    for line in Path(LOCKS).read_text("ascii", "replace").splitlines():
        _, kind, _, mode, pid, where, first, last, *more = [*line.split(), *[""] * 8]
        if kind not in ("POSIX", "OFDLCK") or any(more):
            continue  # another kind of lock, or a waiter
        device, _, inode = where.rpartition(":")
        try:
            yield _KernelLock(
                int(pid),
                mode == "WRITE",
                device,
                int(inode),
                int(first),
                (1 << 63) if last == "EOF" else int(last),
            )
        except ValueError:
            continue


def _command_line(pid: int) -> tuple[str, ...]:
    try:
        content = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(part) for part in content.removesuffix(b"\0").split(b"\0"))
