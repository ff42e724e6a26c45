"""Record waits for a connection of a pool whose connections are all in use.

Only calls that wait are recorded. If the pool has a free connection, the call returns at once and
is not recorded.
"""

from __future__ import annotations

from queryprof.hooks.drivers.driver import Driver, DriverHook, QueryMethod

THREADS_WAIT = QueryMethod("pool wait", "cursor", ("block", "queue"))
TASKS_WAIT = QueryMethod("pool wait", "cursor", ("block", "_queue", "_queue"))

POOLS = {
    pool.module: pool
    for pool in (
        Driver(
            "sqlalchemy.util.queue",
            {"Queue": {"get": THREADS_WAIT}, "AsyncAdaptedQueue?": {"get": TASKS_WAIT}},
            functions={},
        ),
        Driver(
            "psycopg_pool.pool",
            {"WaitingClient": {"wait": "pool wait"}},
            functions={},
            system="postgresql",
        ),
        Driver(
            "psycopg_pool.pool_async",
            {"WaitingClient": {"wait": "pool wait"}},
            functions={},
            system="postgresql",
        ),
        Driver(
            "asyncpg.pool",
            {"Pool": {"_acquire": QueryMethod("pool wait", "cursor", ("", "_queue", "_queue"))}},
            functions={},
            system="postgresql",
        ),
    )
}
"""The pools, by the module that contains them."""


class PoolHook(DriverHook):
    """The probes on the connection pool of one module in POOLS.

    Args:
        module: a key of POOLS.
    """

    def __init__(self, module: str) -> None:
        super().__init__(POOLS[module])
