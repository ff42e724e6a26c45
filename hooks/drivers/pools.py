"""Waiting for a connection of a pool whose connections are all in use.

A pool gives out a free connection at once: such a call is not recorded. Only calls that wait are.
"""

from __future__ import annotations

from queryprof.hooks.drivers.driver import Driver, DriverHook, Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class _Queue(Protocol):
        def empty(self) -> bool: ...

    class _AsyncpgPool(Protocol):
        _queue: _Queue


def _queue_waits(queue: _Queue, block: object = True, timeout: object = None) -> object:  # noqa: ARG001
    return block and queue.empty()


def _asyncpg_waits(pool: _AsyncpgPool, timeout: object = None) -> object:  # noqa: ARG001
    return pool._queue.empty()  # noqa: SLF001


SQLALCHEMY_WAIT = Query("pool wait", "cursor", _queue_waits)

POOLS = {
    pool.module: pool
    for pool in (
        Driver(
            "sqlalchemy.util.queue",
            {"Queue": {"get": SQLALCHEMY_WAIT}, "AsyncAdaptedQueue?": {"get": SQLALCHEMY_WAIT}},
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
            {"Pool": {"_acquire": Query("pool wait", "cursor", _asyncpg_waits)}},
            functions={},
            system="postgresql",
        ),
    )
}
"""By the module that has the pool."""


class PoolHook(DriverHook):
    """The probes on a pool of POOLS.

    Args:
        module: a key of POOLS.
    """

    def __init__(self, module: str) -> None:
        super().__init__(POOLS[module])
