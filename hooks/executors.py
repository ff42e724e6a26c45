"""Attaches to the functions that hand work to other threads: the submitter's call path and span are
known there, and how long the work waited for a thread.

concurrent.futures is also what asyncio.to_thread and run_in_executor use; Twisted's thread pool is
what deferToThread and adbapi use; AnyIO's threads run the plain functions of Starlette and FastAPI;
aiosqlite has a thread for each connection.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.errors import DriverError
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


class Handover:
    """A method to which a function is handed over.

    Attributes:
        owner, method: the class in the module, and its method.
        position: of the function among the arguments; the first one is the object or the class.
        is_awaited: the method is a coroutine, which ends with the function's result.
        is_timed: the function is handed over in this call.
        is_database: every function that is handed over is a call of a driver.
    """

    def __init__(
        self,
        owner: str,
        method: str,
        position: int,
        *,
        is_awaited: bool = False,
        is_timed: bool = True,
        is_database: bool = False,
    ) -> None:
        self.owner = owner
        self.method = method
        self.position = position
        self.is_awaited = is_awaited
        self.is_timed = is_timed
        self.is_database = is_database


HANDOVERS = {
    "concurrent.futures.thread": ("thread pool", [Handover("ThreadPoolExecutor", "submit", 1)]),
    "twisted.python.threadpool": (
        "twisted",
        [Handover("ThreadPool", "callInThreadWithCallback", 2)],
    ),
    "anyio._backends._asyncio": (
        "anyio",
        [Handover("AsyncIOBackend", "run_sync_in_worker_thread", 1, is_awaited=True)],
    ),
    "aiosqlite.core": (
        "aiosqlite",
        [
            Handover("Connection", "_execute", 1, is_awaited=True, is_database=True),
            Handover("Connection", "__init__", 1, is_timed=False),
        ],
    ),
}
"""By module: the name of its threads in a report, and the methods."""


class ExecutorHook:
    """Keeps the methods of one module replaced.

    Args:
        module: a key of HANDOVERS.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self._kind, self.handovers = HANDOVERS[module]
        self._replaced = Replacements()

    def attach(self, module: ModuleType) -> None:
        """Replaces the methods; all of them or none.

        Raises:
            DriverError: a class or method is missing.
        """
        try:
            for handover in self.handovers:
                self._replace(module, handover)
        except BaseException:
            self.detach()
            raise

    def detach(self) -> None:
        """Puts the methods back."""
        self._replaced.undo()

    def _replace(self, module: ModuleType, handover: Handover) -> None:
        owner = getattr(module, handover.owner, None)
        original = vars(owner).get(handover.method) if isinstance(owner, type) else None
        if original is None:
            raise DriverError(
                f"{self.module} has no {handover.owner}.{handover.method}; too old, or too new?"
            )
        is_class_method = isinstance(original, classmethod)
        runner = _core.handover_runner(
            original.__func__ if is_class_method else original,
            self._kind,
            handover.position,
            handover.is_awaited,
            handover.is_timed,
            handover.is_database,
        )
        wrapper: object = runner
        if is_class_method:
            wrapper = classmethod(runner)  # type: ignore[arg-type]
        self._replaced.measure(owner, handover.method, wrapper)
