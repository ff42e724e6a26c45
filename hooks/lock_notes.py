"""Add notes (PEP 678) to "database is locked" exceptions that name the holder of the lock.

The notes are added only if the user has enabled them. Finding the holder takes about 40 ms the
first time and 1 ms afterwards. This cost arises only after such an error.
"""

from __future__ import annotations

import os
import time

from queryprof.core.held_signals import held_signals
from queryprof.core.own_imports import own_imports
from queryprof.core.wall_clock import unix_ns

MAX_NAMED = 3
MAX_COMMAND_CHARACTERS, MAX_SQL_CHARACTERS = 100, 80
FRAMES = 2
"""Number of frames shown of a lock's stack. One frame is not enough, because it may be in a shared
helper function.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queryprof.model.live import HeldLock
    from queryprof.program.kernel_locks import LockOwner


class NoteTimeBudget:
    """Limits the time for notes, so that programs that retry do not become slow.

    After the first second, all notes together take at most a twentieth of the time.
    """

    FREE_S, SHARE = 1.0, 0.05

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._start_s = time.monotonic()

    def is_left(self) -> bool:
        passed_s = time.monotonic() - self._start_s
        return self.spent_s < self.FREE_S + self.SHARE * passed_s


budget = NoteTimeBudget()


def add_lock_note(
    error: BaseException, database: str, has_write_lock: bool, is_upgrade: bool
) -> None:
    """Add a note, if the kernel lists a lock. The exception's type, arguments and text stay the
    same.

    Args:
        database: path of the database's file; "" if SQLite refused the statement without waiting.
        has_write_lock: whether the refused connection has the write lock, so that it waited for
            readers.
        is_upgrade: whether the transaction has read and now writes. In this case, SQLite does not
            wait.
    """
    if budget.is_left():
        with held_signals():
            _add_lock_notes(error, database, has_write_lock, is_upgrade)


def _add_lock_notes(
    error: BaseException, database: str, has_write_lock: bool, is_upgrade: bool
) -> None:
    start_s = time.monotonic()
    try:
        lines: list[str] = []
        if _is_busy_snapshot(error):  # the lock may already be released
            lines = [SNAPSHOT]
        elif database:
            lines = [UPGRADE] if is_upgrade and not has_write_lock else []
            lines += _reader_notes(database) if has_write_lock else _holder_notes(database)
    finally:
        budget.spent_s += time.monotonic() - start_s
    if lines:
        name = os.path.basename(database) or "the database"
        error.add_note("\n".join([f"queryprof: {name} is locked:", *lines]))


SNAPSHOT = (
    "  another connection has committed since this transaction began to read, so it cannot write"
    " and no timeout helps. Use BEGIN IMMEDIATE"
)
UPGRADE = (
    "  SQLite refused the write at once, because this transaction read first and another one is"
    " writing. SQLite does not wait, so no timeout helps. Use BEGIN IMMEDIATE"
)
BUSY_SNAPSHOT = 517


def _is_busy_snapshot(error: BaseException) -> bool:
    """Return whether this is SQLITE_BUSY_SNAPSHOT, from either driver.

    (https://www.sqlite.org/rescode.html#busy_snapshot)
    """
    codes = (getattr(error, "sqlite_errorcode", None), getattr(error, "extendedresult", None))
    return BUSY_SNAPSHOT in codes


def _holder_notes(database: str) -> Iterator[str]:
    """Yield lines about the holders of locks, with the time since which the write lock is held."""
    with own_imports():
        from queryprof.program.kernel_locks import HAS_OPEN, find_lock_owners
        from queryprof.region.live import ActivityReader, locks_held_here
        from queryprof.trace.attached import file_identity

        owners = [owner for owner in find_lock_owners(database) if owner.does != HAS_OPEN]
        identity = file_identity(os.stat(database))
        watch = ActivityReader(pids={owner.pid for owner in owners})
        try:
            held = [
                *locks_held_here(),
                *(one for process in watch.read_activity() for one in process.held),
            ]
        finally:
            watch.close()
    yield from _owner_lines(owners[:MAX_NAMED], [one for one in held if one.identity == identity])


def _reader_notes(database: str) -> Iterator[str]:
    """Yield lines about readers in other processes. The kernel does not list this process's readers
    separately.
    """
    with own_imports():
        from queryprof.program.kernel_locks import READS, find_lock_owners

        owners = [
            one
            for one in find_lock_owners(database)
            if one.does == READS and one.pid != os.getpid()
        ]
    yield "  this connection has the write lock, and waits for readers to end" + (
        ""
        if owners
        else ": a cursor of this process with rows left, or a transaction that has read"
    )
    yield from _owner_lines(owners[:MAX_NAMED], [])


def _owner_lines(owners: list[LockOwner], held: list[HeldLock]) -> Iterator[str]:
    for owner in owners:
        who = "this process" if owner.pid == os.getpid() else f"process {owner.pid}"
        command = _printable_line(_shorten(" ".join(owner.command), MAX_COMMAND_CHARACTERS))
        yield f"  {who if owner.pid else 'a process of another container or user'} {owner.does}" + (
            f": {command}" if command else ""
        )
        for one in held:
            if one.pid == owner.pid:
                frames = [f"{at.function}() {at.file}:{at.line}" for at in one.path[:FRAMES]]
                at = f" at {' <- '.join(frames)}" if frames else ""
                seconds = max(0.0, (unix_ns() - one.start_unix_ns) / 1e9)
                yield _printable_line(
                    f"    for {seconds:.2f} s, taken{at} by"
                    f" {_shorten(one.statement, MAX_SQL_CHARACTERS)}, thread {one.thread}"
                )


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _printable_line(text: str) -> str:
    """Make a text one printable line: commands and names come from other users."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
