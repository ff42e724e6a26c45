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
        self._threads: list[int] = []  # that may not have gone yet

    def watch(self) -> None:
        """Registers the hook."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before,
                after_in_parent=self._after_in_parent,
                after_in_child=self._after_in_child,
            )

    def __enter__(self) -> None:
        self._lock.acquire()
        self._threads = [*self._threads[-3:], _thread.get_native_id()]

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _before(self) -> None:
        self._lock.acquire()
        if self._threads:
            self._wait()

    def _wait(self) -> None:
        """Waits until the thread is none of the process's: Python (3.12 on) warns of a fork where
        there are others, and the program may have none.
        """
        import time

        for _ in range(THREAD_ENDS):
            left = [one for one in self._threads if os.path.exists(f"/proc/self/task/{one}")]
            if not left:
                break
            time.sleep(0.0001)
        self._threads.clear()

    def _after_in_parent(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it was registered in the midst of the fork

    def _after_in_child(self) -> None:
        self._lock = _thread.RLock()
        self._threads.clear()


forks = Forks()
