"""Wait until a program imports a measured library, so that other programs pay only for the
waiting.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, get_ident

from queryprof.core.held_signals import held_signals

# Imported now, so that the program's own finders do not see the import.
from queryprof.core.own_imports import own_imports  # noqa: F401
from queryprof.hooks.libraries import HOOK_BY_MODULE, SQLITE3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from _typeshed.importlib import MetaPathFinderProtocol

MEASURED = frozenset({SQLITE3, *HOOK_BY_MODULE})
OWN_MODULE_PREFIX = "queryprof."
"""Prefix of the modules with queryprof's public functions, plugin and middlewares."""

MAX_WAIT_S = 10.0
"""How long a thread waits for `begin` in another thread. That thread may need a lock that the
waiting thread holds.
"""


class FirstUseFinder:
    """A finder at the head of sys.meta_path, until the program imports a measured library.

    Args:
        begin: called once, before the search for the module, with signals held. If `begin` raises,
            the next import of a measured library calls `begin` again.
    """

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self._lock = allocate_lock()
        self._thread, self._pid = 0, 0  # id of the thread that calls `begin`
        self._followers: Sequence[MetaPathFinderProtocol] = ()

    def wait(self) -> None:
        """Start waiting, or begin at once if a measured library is already imported."""
        if MEASURED.isdisjoint(sys.modules):
            sys.meta_path.insert(0, self)
        else:
            self._begin()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Begin before the first import of a measured library (importlib.abc.MetaPathFinder). The
        finders that `begin` adds do the search.
        """
        if name not in MEASURED and not name.startswith(OWN_MODULE_PREFIX):
            return None
        if self._pid == os.getpid() and self._thread == get_ident():
            return None  # `begin` itself imports the module
        for finder in self._begin_once():
            spec: ModuleSpec | None = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None

    def _begin_once(self) -> Sequence[MetaPathFinderProtocol]:
        """Call `begin` if needed, and return the finders that replace this one."""
        if self._pid and self._pid != os.getpid():
            self._lock = allocate_lock()  # the parent was calling `begin` when it forked
        is_mine = self._lock.acquire(timeout=MAX_WAIT_S)
        try:
            if is_mine and self in sys.meta_path:
                self._thread, self._pid = get_ident(), os.getpid()
                before = set(map(id, sys.meta_path))
                with held_signals():
                    self._begin()
                    self._followers = [one for one in sys.meta_path if id(one) not in before]
                    self._replace_self()
        finally:
            if is_mine:  # false if another thread is still in `begin`
                self._thread = self._pid = 0
                self._lock.release()
        return self._followers

    def _replace_self(self) -> None:
        """Replace this finder by the new finders, as if they had been there from the start."""
        for finder in self._followers:
            sys.meta_path.remove(finder)
        if self in sys.meta_path:
            place = sys.meta_path.index(self)
            sys.meta_path[place : place + 1] = self._followers
