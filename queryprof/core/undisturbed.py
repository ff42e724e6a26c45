"""Protect longer work of queryprof from what a program has set or still does."""

from __future__ import annotations

import gc
import sys

FRAMES = 1000
"""How many more calls can be nested: as many as Python allows a program."""

MAX_INT = 2**31 - 1
"""The largest recursion limit, a C int. Programs set it to have no limit."""


class undisturbed:
    """A context without garbage collection, and with room for calls whatever the program's limit.

    At the end of a program its daemon threads continue. A collection that closes their connections
    lets them make more garbage than it frees, and would never end.
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
            pass  # it is already nested deeper
        if self._collects:
            gc.enable()
