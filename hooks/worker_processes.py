"""Detect the normal end of a forked multiprocessing worker.

A worker leaves by os._exit, so nothing runs after its finalizers.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

LAST = -1_000_000
"""Priority of a finalizer that runs after all others."""


class WorkerEnd:
    """Keeps the function to run at the end of a worker. The session sets this function."""

    def __init__(self) -> None:
        self.handler: Callable[[], None] = lambda: None


worker_end = WorkerEnd()


class _Registered:
    """While an instance exists, each new worker registers a finalizer."""

    def __init__(self, util: ModuleType) -> None:
        self.util = util


def _register_finalizer(registered: _Registered) -> None:
    registered.util.Finalize(None, _run_worker_end, exitpriority=LAST)


def _run_worker_end() -> None:
    worker_end.handler()


class WorkerProcesses:
    """The hook for multiprocessing."""

    module = "multiprocessing.util"

    def __init__(self, module: str) -> None:
        self.module = module
        self._registered: _Registered | None = None

    def attach(self, module: ModuleType) -> None:
        """Make workers register a finalizer (multiprocessing.util.register_after_fork)."""
        self._registered = _Registered(module)
        module.register_after_fork(self._registered, _register_finalizer)

    def detach(self) -> None:
        """Drop the registered object, which multiprocessing holds weakly."""
        self._registered = None
