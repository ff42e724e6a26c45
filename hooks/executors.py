"""Attach to functions that hand work to other threads.

The recorded work then has the submitter's call path and span, and the time in which the work waited
for a thread.

- concurrent.futures: also used by asyncio.to_thread and run_in_executor
- Twisted's thread pool: used by deferToThread and adbapi
- AnyIO's threads: run the plain functions of Starlette and FastAPI
- aiosqlite: one thread per connection
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.errors import DriverError
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


class HandoverMethod:
    """A method that hands a function to another thread.

    Attributes:
        owner, method: the class in the module, and its method.
        position: index of the function among the arguments; the first argument is the object or
            class.
        is_awaited: whether the method is a coroutine that ends with the function's result.
        is_timed: whether the function is handed over in this call.
        is_database: whether every function handed over is a driver call.
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
    "concurrent.futures.thread": (
        "thread pool",
        [HandoverMethod("ThreadPoolExecutor", "submit", 1)],
    ),
    "twisted.python.threadpool": (
        "twisted",
        [HandoverMethod("ThreadPool", "callInThreadWithCallback", 2)],
    ),
    "anyio._backends._asyncio": (
        "anyio",
        [HandoverMethod("AsyncIOBackend", "run_sync_in_worker_thread", 1, is_awaited=True)],
    ),
    "aiosqlite.core": (
        "aiosqlite",
        [
            HandoverMethod("Connection", "_execute", 1, is_awaited=True, is_database=True),
            HandoverMethod("Connection", "__init__", 1, is_timed=False),
        ],
    ),
}
"""The name of a module's threads in reports, and its methods, by module."""


class ExecutorHook:
    """The replaced methods of one module.

    Args:
        module: a key of HANDOVERS.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self._kind, self.handovers = HANDOVERS[module]
        self._replaced = Replacements()

    def attach(self, module: ModuleType) -> None:
        """Replace the methods; all or none.

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
        """Restore the methods."""
        self._replaced.undo()

    def _replace(self, module: ModuleType, handover: HandoverMethod) -> None:
        owner = getattr(module, handover.owner, None)
        original = vars(owner).get(handover.method) if isinstance(owner, type) else None
        if original is None:
            raise DriverError(
                f"{self.module} has no {handover.owner}.{handover.method}; too old, or too new?"
            )
        is_class_method = isinstance(original, classmethod)
        runner = _core.handoff_wrapper(
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
