"""One thread at a time starts, stops or reads the recording. A signal's handler and a finalizer run
in the midst of that, in the same thread: what they want is done when it is through.
"""

from __future__ import annotations

from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Exclusive:
    """A context that one thread at a time is in, and may enter again.

    Args:
        later: called at the end of the outermost block if `postpone` was called in it.
    """

    def __init__(self, later: Callable[[], None]) -> None:
        self._later = later
        self.reset()

    def reset(self) -> None:
        """Forgets all blocks: those of other threads do not go on in a forked child."""
        self._lock = RLock()
        self._depth = 0
        self._is_postponed = False

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *exc_info: object) -> None:
        if not self._depth or not self.is_mine:
            return  # it began before a fork, in whose child the lock is another, or never
        self._depth -= 1
        try:
            if not self._depth and self._is_postponed:
                self._is_postponed = False
                self._later()  # before another thread can begin something
        finally:
            self._lock.release()

    @property
    def is_mine(self) -> bool:
        """Whether this thread is in a block."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]  # noqa: SLF001 as threading does

    @property
    def is_nested(self) -> bool:
        """Whether the block around is itself in one of the same thread."""
        return self._depth > 1

    def postpone(self) -> None:
        """Has `later` called at the end of the outermost block."""
        self._is_postponed = True
