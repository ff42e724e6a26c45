"""Make forks wait for the thread that answers a command.

Otherwise a child would inherit locks that this thread holds, including import locks, without the
thread.
"""

from __future__ import annotations

import _thread
import os

THREAD_ENDS = 1000
"""How many times a fork checks whether the thread has ended, at intervals of 0.1 ms."""


class ForkGuard:
    """Prevents forks while a thread answers a command. The thread uses this as a context.

    The hook is registered twice: at first, and again after the session has registered its own
    hooks. The session's hooks take their lock while this lock is held.
    """

    def __init__(self) -> None:
        self._lock = _thread.RLock()
        self._expected: list[None] = []  # threads that have not started yet
        self._threads: list[int] = []  # threads that may not have ended yet

    def expect_thread(self) -> None:
        """Announce a thread."""
        self._expected.append(None)

    def thread_started(self) -> None:
        """Note that an announced thread has started."""
        if self._expected:  # empty in a forked child
            self._expected.pop()

    def watch(self) -> None:
        """Register the hook."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._wait_for_threads,
                after_in_parent=self._after_in_parent,
                after_in_child=self._after_in_child,
            )

    def __enter__(self) -> None:
        self._threads = [*self._threads[-3:], _thread.get_native_id()]
        self.thread_started()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _wait_for_threads(self) -> None:
        """Wait until no thread answers a command.

        Python (3.12 and newer) warns about a fork if another thread exists, even if the thread is
        queryprof's.
        """
        self._lock.acquire()
        if not self._expected and not self._threads:
            return
        import time

        for _ in range(THREAD_ENDS):
            if not self._expected and not any(map(_thread_exists, self._threads)):
                break
            self._lock.release()
            time.sleep(0.0001)
            self._lock.acquire()
        self._threads.clear()

    def _after_in_parent(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # the hook was registered during the fork

    def _after_in_child(self) -> None:
        self._lock = _thread.RLock()
        self._expected.clear()
        self._threads.clear()


def _thread_exists(thread: int) -> bool:
    return os.path.exists(f"/proc/self/task/{thread}")


fork_guard = ForkGuard()
