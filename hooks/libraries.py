"""All libraries that queryprof attaches to when the program imports them, but for sqlite3.

The module that attaches to a library is imported when the library is: unused libraries cost
nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from queryprof.hooks.imports import Hook

DRIVERS = ("apsw", "pysqlite3", "sqlcipher3", "sqlean", "libsql", "psycopg", "duckdb")
"""The drivers among them."""

HOMES = {
    "apsw": "queryprof.hooks.drivers.own_sqlite:apsw_hook",
    "pysqlite3._sqlite3": "queryprof.hooks.drivers.own_sqlite:pysqlite3_hook",
    "sqlcipher3._sqlite3": "queryprof.hooks.drivers.own_sqlite:sqlcipher3_hook",
    "sqlean._sqlite3": "queryprof.hooks.drivers.own_sqlite:sqlean_hook",
    "psycopg": "queryprof.hooks.drivers.pep249:psycopg_hook",
    "duckdb": "queryprof.hooks.drivers.pep249:duckdb_hook",
    "libsql": "queryprof.hooks.drivers.pep249:libsql_hook",
    "concurrent.futures.thread": "queryprof.hooks.executors:thread_pool_hook",
    "twisted.python.threadpool": "queryprof.hooks.executors:twisted_hook",
    "anyio._backends._asyncio": "queryprof.hooks.executors:anyio_hook",
    "aiosqlite.core": "queryprof.hooks.executors:aiosqlite_hook",
    "sqlalchemy.orm.strategies": "queryprof.hooks.sqlalchemy_loads:LazyLoads",
    "asyncio.base_events": "queryprof.hooks.event_loops.asyncio_loop:AsyncioLoop",
    "multiprocessing.util": "queryprof.hooks.worker_processes:WorkerProcesses",
    "uvloop": "queryprof.hooks.event_loops.uvloop_loop:UvloopLoop",
    "trio._core._run": "queryprof.hooks.event_loops.trio_loop:TrioLoop",
    "twisted.internet.base": "queryprof.hooks.event_loops.twisted_loop:base_hook",
    "twisted.internet.posixbase": "queryprof.hooks.event_loops.twisted_loop:posixbase_hook",
    "twisted.internet.selectreactor": "queryprof.hooks.event_loops.twisted_loop:selectreactor_hook",
}
"""By the module that must be imported first: the module and its function that make the hook."""


class Later:
    """A hook that is made when its module is imported.

    Args:
        module: a key of HOMES.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self._hook: Hook | None = None

    @property
    def counters_off(self) -> str | None:
        """Why the counters of a driver that is attached to are unknown; None: they are not."""
        return getattr(self._hook, "counters_off", None)

    def attach(self, module: ModuleType) -> None:
        """Makes the hook, once, and attaches."""
        if self._hook is None:
            home, _, name = HOMES[self.module].partition(":")
            self._hook = getattr(import_module(home), name)()
        self._hook.attach(module)

    def detach(self) -> None:
        """Detaches, if there is a hook."""
        if self._hook is not None:
            self._hook.detach()


def library_hooks() -> list[Hook]:
    """A hook for each library, or part of one."""
    return [Later(module) for module in HOMES]
