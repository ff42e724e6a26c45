"""Only calls that wait for a connection of a pool are recorded, with their time and line."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine, exc, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import queue as sqlalchemy_queue

import queryprof
from queryprof.model import Aggregate, Profile

pytestmark = pytest.mark.once

NO_TIMEOUT = 60


def waits_of(profile: Profile) -> list[Aggregate]:
    return [one for one in profile.aggregates if one.operation == "pool wait"]


def wait_until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        threading.Event().wait(0.001)


async def others_run_until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110, the pool has no event for it
        await asyncio.sleep(0)


MakeEngine = Callable[..., Any]


@pytest.fixture
def engine_of() -> Iterator[MakeEngine]:
    """Makes engines with pools of `size` connections. They are closed after the test."""
    engines = []

    def make(size: int, overflow: int = 0, timeout_s: float = NO_TIMEOUT) -> Any:
        engine = create_engine(
            "sqlite:///app.db",
            poolclass=QueuePool,
            pool_size=size,
            max_overflow=overflow,
            pool_timeout=timeout_s,
        )
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.dispose()


def is_waiting(queue: Any) -> bool:
    """Return whether a thread waits for an entry of the queue."""
    return bool(queue.not_empty._waiters)


def test_a_thread_that_waits_is_recorded_with_its_line(engine_of: MakeEngine) -> None:
    engine = engine_of(1)

    def borrow() -> None:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    with queryprof.profile() as recording:
        for _ in range(5):
            borrow()  # the connection is free each time
        with engine.connect():
            thread = threading.Thread(target=borrow)
            thread.start()
            wait_until(lambda: is_waiting(engine.pool._pool))
        thread.join()
    (wait,) = waits_of(recording.profile)
    assert (wait.statement, wait.count, wait.errors) == ("(pool wait)", 1, 0)
    line = borrow.__code__.co_firstlineno + 1
    assert next(one.line for one in wait.path if one.kind == "user") == line


def test_a_pool_that_grows_waits_for_nothing(engine_of: MakeEngine) -> None:
    engine = engine_of(1, overflow=1)
    with queryprof.profile() as recording, engine.connect(), engine.connect():
        pass
    assert not waits_of(recording.profile)


def test_one_that_gives_up_raises_as_before(engine_of: MakeEngine) -> None:
    engine = engine_of(1, timeout_s=0.01)
    with queryprof.profile() as recording, engine.connect():
        with pytest.raises(exc.TimeoutError) as raised:
            engine.connect()
    assert "QueuePool limit of size 1 overflow 0 reached" in str(raised.value)
    (wait,) = waits_of(recording.profile)
    assert (wait.count, wait.errors) == (1, 1)
    assert wait.total_ns >= 10_000_000


def test_tasks_of_one_loop_wait_at_once() -> None:
    """Each waits for its own time, while the others run."""

    async def main() -> None:
        engine = create_async_engine("sqlite+aiosqlite:///app.db", pool_size=1, max_overflow=0)

        async def borrow() -> None:
            async with engine.connect() as connection:
                await connection.execute(text("SELECT 1"))

        async with engine.connect():
            tasks = [asyncio.create_task(borrow()) for _ in range(3)]
            await others_run_until(lambda: len(engine.pool._pool._queue._getters) == 3)
        await asyncio.gather(*tasks)
        await engine.dispose()

    with queryprof.profile() as recording:
        asyncio.run(main())
    assert sum(one.count for one in waits_of(recording.profile)) == 3
    assert not [stall for loop in recording.profile.loops for stall in loop.stalls if stall.causes]


def test_asyncpg(postgresql: str) -> None:
    asyncpg = pytest.importorskip("asyncpg")
    host = postgresql.split(maxsplit=1)[0].partition("=")[2]

    async def main() -> None:
        async with asyncpg.create_pool(host=host, user="postgres", min_size=1, max_size=1) as pool:
            assert await pool.fetchval("SELECT 1") == 1
            async with pool.acquire():
                task = asyncio.create_task(pool.fetchval("SELECT 2"))
                await others_run_until(lambda: bool(pool._queue._getters))
            assert await task == 2

    with queryprof.profile() as recording:
        asyncio.run(main())
    (wait,) = waits_of(recording.profile)
    assert (wait.count, wait.errors) == (1, 0)


def test_psycopg(postgresql: str) -> None:
    psycopg_pool = pytest.importorskip("psycopg_pool")

    def borrow() -> None:
        with pool.connection() as connection:
            connection.execute("SELECT 1")

    with (
        queryprof.profile() as recording,
        psycopg_pool.ConnectionPool(postgresql, min_size=1, max_size=1) as pool,
    ):
        pool.wait()
        borrow()
        with pool.connection():
            thread = threading.Thread(target=borrow)
            thread.start()
            wait_until(lambda: bool(pool._waiting))
        thread.join()
    (wait,) = waits_of(recording.profile)
    assert (wait.count, wait.errors) == (1, 0)


def test_psycopg_async(postgresql: str) -> None:
    psycopg_pool = pytest.importorskip("psycopg_pool")

    async def main() -> None:
        async with psycopg_pool.AsyncConnectionPool(
            postgresql, min_size=1, max_size=1, open=False
        ) as pool:
            await pool.wait()

            async def borrow() -> None:
                async with pool.connection() as connection:
                    await connection.execute("SELECT 1")

            await borrow()
            async with pool.connection():
                task = asyncio.create_task(borrow())
                await others_run_until(lambda: bool(pool._waiting))
            await task

    with queryprof.profile() as recording:
        asyncio.run(main())
    (wait,) = waits_of(recording.profile)
    assert (wait.count, wait.errors) == (1, 0)


def test_the_pools_are_as_before_afterwards() -> None:
    original = sqlalchemy_queue.Queue.get
    with queryprof.profile():
        assert (sqlalchemy_queue.Queue.get is original) == (sys.version_info >= (3, 12))
    assert sqlalchemy_queue.Queue.get is original


def test_a_trace_function_sees_what_it_sees_without_recording() -> None:
    """None of queryprof's code runs in Python there, so no signal handler can run in it."""

    def lines() -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []

        def trace(frame: Any, event: str, _: object) -> Any:
            seen.append((frame.f_code.co_filename, frame.f_lineno))
            return trace

        queue: Any = sqlalchemy_queue.Queue()
        queue.put(1)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            assert queue.get() == 1
            with pytest.raises(sqlalchemy_queue.Empty):
                queue.get(block=False)
            with pytest.raises(sqlalchemy_queue.Empty):
                queue.get(True, 1e-9)  # over at once: the queue waits in a loop
        finally:
            sys.settrace(before)
        return seen

    lines()  # this imports modules and fills caches
    bare = lines()
    with queryprof.profile() as recording:
        recorded = lines()
    assert recorded == bare
    (wait,) = waits_of(recording.profile)
    assert (wait.count, wait.errors) == (1, 1)
