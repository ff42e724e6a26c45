"""Notes on exceptions (PEP 678) that say that a database is locked: who has the lock. Only where the user
wants them: to find that out takes some 20 ms, after the error alone.
"""

from __future__ import annotations

import os
import time

from queryprof.core.own_imports import own_imports

MOST_NAMED = 3
LONGEST_COMMAND = 100

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queryprof.model.live import HeldLock
    from queryprof.trace.lock_owners import LockOwner


def explain(error: BaseException, database: str) -> None:
    """Adds the note, if the kernel knows of a lock. Type, arguments and text stay as they are.

    Args:
        database: the path of its file.
    """
    with own_imports():
        from queryprof.trace.attached import identity_of
        from queryprof.trace.live import Watch, held_here
        from queryprof.trace.lock_owners import HAS_OPEN, owners_of

        owners = [owner for owner in owners_of(database) if owner.does != HAS_OPEN]
        identity = identity_of(os.stat(database))
        watch = Watch()
        try:
            held = [*held_here(), *(one for process in watch.look() for one in process.held)]
        finally:
            watch.close()
    lines = list(_lines(owners[:MOST_NAMED], [one for one in held if one.identity == identity]))
    if lines:
        error.add_note("\n".join([f"queryprof: {os.path.basename(database)} is locked:", *lines]))


def _lines(owners: list[LockOwner], held: list[HeldLock]) -> Iterator[str]:
    for owner in owners:
        who = "this process" if owner.pid == os.getpid() else f"process {owner.pid}"
        command = " ".join(owner.command)[:LONGEST_COMMAND]
        yield f"  {who if owner.pid else 'a process of another container or user'} {owner.does}" + (
            f": {command}" if command else ""
        )
        for one in held:
            if one.pid == owner.pid:
                frame = one.path[0] if one.path else None
                at = f" by {frame.function}() {frame.file}:{frame.line}" if frame else ""
                seconds = max(0.0, (time.time_ns() - one.start_unix_ns) / 1e9)
                yield f"    for {seconds:.2f} s{at}, since {one.statement[:80]}, thread {one.thread}"
