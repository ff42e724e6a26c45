"""What a program may have set, or goes on with, that would slow or stop longer work of
queryprof's.
"""

from __future__ import annotations

import gc
import sys

FRAMES = 1000
"""How deep calls may go further: what Python allows a program."""

MOST = 2**31 - 1
"""The largest limit, a C int, which programs set that want none."""


class undisturbed:
    """A context without collections of garbage, and with room for calls, whatever limit the program
    has set.

    At the end of a program its daemon threads run on: a collection that closes their connections
    lets them make more garbage than it frees, and would have no end.
    """

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()
        self._limit = sys.getrecursionlimit()
        sys.setrecursionlimit(min(self._limit + FRAMES, MOST))

    def __exit__(self, *exc_info: object) -> None:
        try:
            sys.setrecursionlimit(self._limit)
        except RecursionError:
            pass  # it is deeper in calls already
        if self._collects:
            gc.enable()
