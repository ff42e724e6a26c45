"""Waits until a program imports something that is measured: one that never does pays for no more
than this.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, get_ident

from queryprof.core.held_signals import held_signals

# Imported now, so that no finder of the program sees it.
from queryprof.core.own_imports import own_imports  # noqa: F401
from queryprof.hooks.libraries import HOMES, SQLITE3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from _typeshed.importlib import MetaPathFinderProtocol

MEASURED = frozenset({SQLITE3, *HOMES})
OURS = "queryprof."
"""How the modules begin by which a program uses the public functions, and the plugin and
middlewares."""

LONGEST_WAIT_S = 10.0
"""How long a thread waits for another one's beginning: it may hold what that needs to go on."""


class FirstUse:
    """A finder at the head of sys.meta_path, until the program imports something that is measured.

    Args:
        begin: called once then, before the module is looked for, while signals wait. If it raises,
            it is called again by the next such import.
    """

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self._lock = allocate_lock()
        self._thread, self._pid = 0, 0  # that begins
        self._followers: Sequence[MetaPathFinderProtocol] = ()

    def wait(self) -> None:
        """Begins at once where something that is measured is imported already."""
        if MEASURED.isdisjoint(sys.modules):
            sys.meta_path.insert(0, self)
        else:
            self._begin()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds nothing itself (importlib.abc.MetaPathFinder)."""
        if name not in MEASURED and not name.startswith(OURS):
            return None
        if self._pid == os.getpid() and self._thread == get_ident():
            return None  # what the beginning itself imports
        for finder in self._begin_once():
            spec: ModuleSpec | None = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None

    def _begin_once(self) -> Sequence[MetaPathFinderProtocol]:
        """The finders that are in this one's place now."""
        if self._pid and self._pid != os.getpid():
            self._lock = allocate_lock()  # a fork's parent was beginning
        is_mine = self._lock.acquire(timeout=LONGEST_WAIT_S)
        try:
            if is_mine and self in sys.meta_path:
                self._thread, self._pid = get_ident(), os.getpid()
                before = set(map(id, sys.meta_path))
                with held_signals():
                    self._begin()
                    self._followers = [one for one in sys.meta_path if id(one) not in before]
                    self._make_room()
        finally:
            if is_mine:  # else another thread still begins
                self._thread = self._pid = 0
                self._lock.release()
        return self._followers

    def _make_room(self) -> None:
        """Puts those that are new where this one stands: as if they had been there since
        the start.
        """
        for finder in self._followers:
            sys.meta_path.remove(finder)
        if self in sys.meta_path:
            place = sys.meta_path.index(self)
            sys.meta_path[place : place + 1] = self._followers
