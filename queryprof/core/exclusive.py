"""Let only one thread at a time start, stop or read the recording. If a signal handler or a
finalizer interrupts this work in the same thread, the handler's own request is postponed until the
work ends.
"""

from __future__ import annotations

from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class ExclusiveContext:
    """A context for one thread at a time, which may enter it again.

    Args:
        later: called at the end of the outermost block if `postpone` was called in it.
    """

    def __init__(self, later: Callable[[], None]) -> None:
        self._later = later
        self.reset()

    def reset(self) -> None:
        """Forget all blocks. A forked child calls this, because the threads that were in a block do
        not exist in the child.
        """
        self._lock = RLock()
        self._depth = 0
        self._is_postponed = False

    def __enter__(self) -> None:
        try:
            self._lock.acquire()
            self._depth += 1
        except BaseException:  # raised by a signal handler
            if self.is_mine:
                self._lock.release()
            raise

    def __exit__(self, *exc_info: object) -> None:
        if not self._depth or not self.is_mine:
            return  # the block began before a fork; the child has another lock, or none
        self._depth -= 1
        try:
            if not self._depth and self._is_postponed:
                self._is_postponed = False
                self._later()  # before another thread can begin a block
        finally:
            self._lock.release()

    @property
    def is_mine(self) -> bool:
        """Return whether this thread is in a block."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]  # noqa: SLF001 as threading does

    @property
    def is_nested(self) -> bool:
        """Return whether the current block is inside another block of the same thread."""
        return self._depth > 1

    def postpone(self) -> None:
        """Call `later` at the end of the outermost block."""
        self._is_postponed = True
