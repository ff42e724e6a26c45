"""A fork waits for the thread that answers a command: its child would have locks that are that
thread's, those of imports, too, and not the thread.
"""

from __future__ import annotations

import _thread
import os

THREAD_ENDS = 1000
"""How often a fork looks whether the thread has gone, 0.1 ms apart."""


class Forks:
    """Keeps forks and the thread that answers a command apart, which is in this context.

    Its hook is registered twice: at first, and when the session has registered its own, which take
    a lock of theirs inside of this one.
    """

    def __init__(self) -> None:
        self._lock = _thread.RLock()
        self._expected: list[None] = []  # threads that have not come yet
        self._threads: list[int] = []  # that may not have gone yet

    def expect(self) -> None:
        """Says that a thread will come."""
        self._expected.append(None)

    def come(self) -> None:
        """Says that one has come."""
        if self._expected:  # else it is a forked child
            self._expected.pop()

    def watch(self) -> None:
        """Registers the hook."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before,
                after_in_parent=self._after_in_parent,
                after_in_child=self._after_in_child,
            )

    def __enter__(self) -> None:
        self._threads = [*self._threads[-3:], _thread.get_native_id()]
        self.come()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _before(self) -> None:
        """Waits until there is no such thread: Python (3.12 on) warns of a fork where there are
        others, and the program may have none.
        """
        self._lock.acquire()
        if not self._expected and not self._threads:
            return
        import time

        for _ in range(THREAD_ENDS):
            if not self._expected and not any(map(_is_there, self._threads)):
                break
            self._lock.release()
            time.sleep(0.0001)
            self._lock.acquire()
        self._threads.clear()

    def _after_in_parent(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it was registered in the midst of the fork

    def _after_in_child(self) -> None:
        self._lock = _thread.RLock()
        self._expected.clear()
        self._threads.clear()


def _is_there(thread: int) -> bool:
    return os.path.exists(f"/proc/self/task/{thread}")


forks = Forks()
