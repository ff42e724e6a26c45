"""All libraries to which queryprof attaches when the program imports them.

The module that attaches to a library is imported together with the library, so unused libraries
cost nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from queryprof.hooks.imports import Hook

SQLITE3 = "_sqlite3"
"""The standard library's driver, whose hook is always created."""

SQLITES = ("apsw", "pysqlite3._sqlite3", "sqlcipher3._sqlite3", "sqlean._sqlite3")
"""Other drivers that contain a SQLite."""

PEP249 = (
    "libsql",
    "psycopg",
    "psycopg2",
    "duckdb",
    "pymysql",
    "MySQLdb.connections",
    "oracledb",
)
"""Measured drivers: the keys of KNOWN in drivers/pep249.py."""

ASYNCPG = "asyncpg"
"""A driver with its own interface."""

DRIVERS = tuple(name.partition(".")[0] for name in (*SQLITES, *PEP249, ASYNCPG))
"""All drivers except the standard library's."""

POOLS = (
    "sqlalchemy.util.queue",
    "psycopg_pool.pool",
    "psycopg_pool.pool_async",
    "asyncpg.pool",
)
"""Modules with pools of connections: the keys of POOLS in drivers/pools.py."""

THREADS = (
    "concurrent.futures.thread",
    "twisted.python.threadpool",
    "anyio._backends._asyncio",
    "aiosqlite.core",
)
REACTORS = ("base", "posixbase", "selectreactor")

HOOK_BY_MODULE = {
    **dict.fromkeys(SQLITES, "drivers.own_sqlite:OwnSqliteHook"),
    **dict.fromkeys(PEP249, "drivers.pep249:KnownDriverHook"),
    "duckdb": "drivers.duckdb_driver:DuckdbHook",
    ASYNCPG: "drivers.asyncpg_driver:AsyncpgHook",
    **dict.fromkeys(POOLS, "drivers.pools:PoolHook"),
    **dict.fromkeys(THREADS, "executors:ExecutorHook"),
    "sqlalchemy.orm.strategies": "lazy_loads:LazyLoads",
    "django.db.models.fields.related_descriptors": "lazy_loads:LazyLoads",
    "django.db.models.query": "lazy_loads:LazyLoads",
    "django.db.models.base": "lazy_loads:LazyLoads",
    "django.db.backends.sqlite3.operations": "lazy_loads:LazyLoads",
    "asyncio.base_events": "event_loops.asyncio_loop:AsyncioLoop",
    "multiprocessing.util": "worker_processes:WorkerProcesses",
    "uvloop": "event_loops.uvloop_loop:UvloopLoop",
    "trio._core._run": "event_loops.trio_loop:TrioLoop",
    **{f"twisted.internet.{name}": "event_loops.twisted_loop:TwistedLoop" for name in REACTORS},
}
"""The class of each hook below `queryprof.hooks`, by the module that must be imported first."""


class LateHook:
    """A hook that is created when its module is imported.

    Args:
        module: a key of HOOK_BY_MODULE.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self._hook: Hook | None = None

    @property
    def counters_off(self) -> str | None:
        """Why the counters of an attached driver are unknown; None if they are known."""
        return getattr(self._hook, "counters_off", None)

    @property
    def sqlite_version(self) -> str | None:
        """The version of an attached driver's own SQLite; None if the driver has no own SQLite."""
        return getattr(self._hook, "sqlite_version", None)

    def attach(self, module: ModuleType) -> None:
        """Create the hook, once, and attach it."""
        if self._hook is None:
            from importlib import import_module  # late, because most programs do not need it

            home, _, name = HOOK_BY_MODULE[self.module].partition(":")
            self._hook = getattr(import_module(f"queryprof.hooks.{home}"), name)(self.module)
        self._hook.attach(module)

    def detach(self) -> None:
        """Detach the hook, if it was created."""
        if self._hook is not None:
            self._hook.detach()


def library_hooks() -> list[Hook]:
    """Return a hook for each library, or for each part of a library."""
    return [LateHook(module) for module in HOOK_BY_MODULE]
