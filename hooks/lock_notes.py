"""Notes (PEP 678) on the exceptions of a locked database: who has the lock. Only where
the user wants them: to find that out takes some 40 ms the first time, and 1 ms then, after the
error alone.
"""

from __future__ import annotations

import os
import time

from queryprof.core.own_imports import own_imports
from queryprof.core.wall_clock import unix_ns

MOST_NAMED = 3
LONGEST_COMMAND, LONGEST_STATEMENT = 100, 80
FRAMES = 2
"""Of who took a lock: the innermost may be a function that all statements go through."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queryprof.model.live import HeldLock
    from queryprof.program.lock_owners import LockOwner


class Budget:
    """Programs that try again and again are not to become slow: after a second all notes together
    take a twentieth of the time.
    """

    FREE_S, SHARE = 1.0, 0.05

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._start_s = time.monotonic()

    def is_left(self) -> bool:
        passed_s = time.monotonic() - self._start_s
        return self.spent_s < self.FREE_S + self.SHARE * passed_s


budget = Budget()


def explain(error: BaseException, database: str, has_write_lock: bool, is_upgrade: bool) -> None:
    """Adds the note, if the kernel knows of a lock. Type, arguments and text stay as they are.

    Args:
        database: the path of its file; "": SQLite refused it without a wait.
        has_write_lock: whether the connection that was refused has it: then it waited for readers.
        is_upgrade: whether its transaction has read, and would write: SQLite does not wait then.
    """
    if not budget.is_left():
        return
    start_s = time.monotonic()
    try:
        lines: list[str] = []
        if _is_of_snapshot(error):  # no lock has to be held now
            lines = [SNAPSHOT]
        elif database:
            lines = [UPGRADE] if is_upgrade and not has_write_lock else []
            lines += _readers(database) if has_write_lock else _holders(database)
    finally:
        budget.spent_s += time.monotonic() - start_s
    if lines:
        name = os.path.basename(database) or "the database"
        error.add_note("\n".join([f"queryprof: {name} is locked:", *lines]))


SNAPSHOT = (
    "  another connection has committed since this transaction began to read: it cannot write any"
    " more, and no timeout helps; begin it with BEGIN IMMEDIATE"
)
UPGRADE = (
    "  it was refused at once, and no timeout helps: its transaction has read, and would write"
    " while another one writes; begin it with BEGIN IMMEDIATE"
)
BUSY_SNAPSHOT = 517


def _is_of_snapshot(error: BaseException) -> bool:
    """Whether it is SQLITE_BUSY_SNAPSHOT (https://www.sqlite.org/rescode.html#busy_snapshot), of
    either driver.
    """
    codes = (getattr(error, "sqlite_errorcode", None), getattr(error, "extendedresult", None))
    return BUSY_SNAPSHOT in codes


def _holders(database: str) -> Iterator[str]:
    """Who has a lock, and of the write lock since when."""
    with own_imports():
        from queryprof.program.lock_owners import HAS_OPEN, owners_of
        from queryprof.region.live import Watch, held_here
        from queryprof.trace.attached import identity_of

        owners = [owner for owner in owners_of(database) if owner.does != HAS_OPEN]
        identity = identity_of(os.stat(database))
        watch = Watch(pids={owner.pid for owner in owners})
        try:
            held = [*held_here(), *(one for process in watch.look() for one in process.held)]
        finally:
            watch.close()
    yield from _lines(owners[:MOST_NAMED], [one for one in held if one.identity == identity])


def _readers(database: str) -> Iterator[str]:
    """Those of other processes; the kernel does not list this process's own apart."""
    with own_imports():
        from queryprof.program.lock_owners import READS, owners_of

        owners = [
            one for one in owners_of(database) if one.does == READS and one.pid != os.getpid()
        ]
    yield "  this connection has the write lock, and waits for readers to end" + (
        ""
        if owners
        else ": a cursor of this process with rows left, or a transaction that has read"
    )
    yield from _lines(owners[:MOST_NAMED], [])


def _lines(owners: list[LockOwner], held: list[HeldLock]) -> Iterator[str]:
    for owner in owners:
        who = "this process" if owner.pid == os.getpid() else f"process {owner.pid}"
        command = _line(_cut(" ".join(owner.command), LONGEST_COMMAND))
        yield f"  {who if owner.pid else 'a process of another container or user'} {owner.does}" + (
            f": {command}" if command else ""
        )
        for one in held:
            if one.pid == owner.pid:
                frames = [f"{at.function}() {at.file}:{at.line}" for at in one.path[:FRAMES]]
                at = f" by {' <- '.join(frames)}" if frames else ""
                seconds = max(0.0, (unix_ns() - one.start_unix_ns) / 1e9)
                yield _line(
                    f"    for {seconds:.2f} s{at}, since {_cut(one.statement, LONGEST_STATEMENT)},"
                    f" thread {one.thread}"
                )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _line(text: str) -> str:
    """One line for a terminal: commands and names are anybody's."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
