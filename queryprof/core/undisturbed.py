"""Protect long tasks of queryprof from the program's settings and threads."""

from __future__ import annotations

import gc
import sys

FRAMES = 1000
"""Number of additional nested calls: Python's default recursion limit."""

MAX_INT = 2**31 - 1
"""The largest recursion limit, a C int. Programs set this value to have no limit."""


class undisturbed:
    """A context without garbage collection, and with room for nested calls whatever the program's
    recursion limit is.

    At the end of a program its daemon threads continue. While a garbage collection closes the
    threads' connections, the threads make more garbage than it frees, so it would never end.
    """

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()
        self._limit = sys.getrecursionlimit()
        sys.setrecursionlimit(min(self._limit + FRAMES, MAX_INT))

    def __exit__(self, *exc_info: object) -> None:
        try:
            sys.setrecursionlimit(self._limit)
        except RecursionError:
            pass  # the calls are already nested deeper than the limit
        if self._collects:
            gc.enable()
