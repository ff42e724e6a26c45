"""A greenlet's call path continues with its parents', even if a thread had the same frames."""

from __future__ import annotations

import _thread
import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import queryprof


def work(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT 1")


def test_after_a_thread_without_a_caller() -> None:
    greenlet = pytest.importorskip("greenlet")
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    done = _thread.allocate_lock()

    def in_a_thread(connection: sqlite3.Connection) -> None:
        work(connection)
        done.release()

    def checkout() -> None:
        greenlet.greenlet(in_a_thread).switch(connection)

    with queryprof.profile() as recording:
        for _ in range(2):
            done.acquire()
            _thread.start_new_thread(in_a_thread, (connection,))
            done.acquire()
            checkout()
    connection.close()
    paths = {
        tuple(frame.function.rpartition(".")[2] for frame in a.path[:3]): a.count
        for a in recording.profile.aggregates
        if a.operation == "execute"
    }
    assert paths == {
        ("work", "in_a_thread"): 2,
        ("work", "in_a_thread", "checkout"): 2,
    }


def of_library(source: str, name: str) -> Callable[..., Any]:
    """Return a function whose code belongs to an installed package."""
    file = os.path.join(os.path.dirname(pytest.__file__), "made_here.py")
    names: dict[str, Any] = {"time": time, "__name__": "pytest.made_here"}
    exec(compile(source, file, "exec"), names)
    return names[name]  # type: ignore[no-any-return]


def test_a_stall_in_a_greenlet_has_the_line_that_awaits_it(tmp_path: Path) -> None:
    """SQLAlchemy runs its own code in a greenlet. Two tasks take turns."""
    asyncio_engine = pytest.importorskip("sqlalchemy.ext.asyncio")
    pytest.importorskip("aiosqlite")
    from sqlalchemy import event, text

    pause = of_library("def pause(*_):\n    time.sleep(0.4)", "pause")
    respond = of_library("async def respond():\n    time.sleep(0.4)", "respond")

    async def fetch_orders(engine: Any) -> None:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1 AS orders"))
        await respond()

    async def fetch_items(engine: Any) -> None:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 2 AS items"))

    async def main() -> None:
        engine = asyncio_engine.create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'x.db'}")
        event.listen(engine.sync_engine, "after_cursor_execute", pause)
        await asyncio.gather(fetch_orders(engine), fetch_items(engine))
        await engine.dispose()

    with queryprof.profile() as recording:
        asyncio.run(main())
    (loop,) = (loop for loop in recording.profile.loops if loop.kind == "asyncio")
    places = [stall.path[0] for stall in loop.stalls if stall.max_ns >= 400e6 and stall.path]
    first = fetch_orders.__code__.co_firstlineno
    assert {(place.function.rpartition(".")[2], place.line) for place in places} >= {
        ("fetch_orders", first + 2),
        ("fetch_orders", first + 3),
        ("fetch_items", fetch_items.__code__.co_firstlineno + 2),
    }
    # Other steps may also take long, on a busy machine.
    paused = [
        stall.path[0].file
        for stall in loop.stalls
        if stall.path and {"pause", "respond"} & {frame.function for frame in stall.stack}
    ]
    assert {*paused} == {__file__}


def test_a_call_in_which_a_greenlet_waits_is_no_time_of_the_step_in_which_it_ends() -> None:
    """The tasks wait for the only connection of a pool."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    asynchronous = pytest.importorskip("sqlalchemy.ext.asyncio")
    pytest.importorskip("aiosqlite")

    async def request(engine: Any) -> None:
        async with engine.connect() as connection:
            await connection.execute(sqlalchemy.text("SELECT 1"))
            await asyncio.sleep(0.01)

    async def main() -> None:
        engine = asynchronous.create_async_engine(
            "sqlite+aiosqlite:///:memory:",
            poolclass=sqlalchemy.AsyncAdaptedQueuePool,
            pool_size=1,
            max_overflow=0,
        )
        await asyncio.gather(*(request(engine) for _ in range(10)))
        await engine.dispose()

    with queryprof.profile() as recording:
        asyncio.run(main())
    assert any(one.operation == "pool wait" for one in recording.profile.aggregates)
    for step in recording.profile.loops[0].functions:
        assert step.database_ns <= step.durations.total_ns, step.function
