"""asyncpg, whose queries return their rows, with a real PostgreSQL."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import queryprof
from conftest import by_operation, owned
from queryprof.hooks.drivers.asyncpg_driver import ASYNCPG
from queryprof.model import Profile

pytestmark = pytest.mark.once

asyncpg = pytest.importorskip("asyncpg")


def host_of(address: str) -> str:
    return address.split(maxsplit=1)[0].partition("=")[2]


def recorded(address: str, work: Callable[[Any], Awaitable[None]]) -> Profile:
    """Return the profile of some work with a connection."""

    async def main() -> None:
        connection = await asyncpg.connect(host=host_of(address), user="postgres")
        await work(connection)
        await connection.close()

    with queryprof.profile() as recording:
        asyncio.run(main())
    return recording.profile


def test_queries_return_their_rows(postgresql: str) -> None:
    before = owned(asyncpg, ASYNCPG)

    async def work(connection: Any) -> None:
        assert owned(asyncpg, ASYNCPG) != before
        await connection.execute("CREATE TEMP TABLE t (id int, name text)")
        pairs = [(number, str(number)) for number in range(10)]
        await connection.executemany("INSERT INTO t VALUES ($1, $2)", pairs)
        assert await connection.execute("UPDATE t SET name = 'x' WHERE id < $1", 4) == "UPDATE 4"
        assert await connection.execute("SELECT id FROM t") == "SELECT 10"
        assert len(await connection.fetch("SELECT * FROM t WHERE id > $1", 2)) == 7
        assert len(await connection.fetch(query="SELECT id, name FROM t")) == 10
        assert await connection.fetchrow("SELECT name FROM t WHERE id = $1", 99) is None
        assert await connection.fetchrow("SELECT name FROM t WHERE id = $1", 9)
        assert await connection.fetchval("SELECT 'INSERT 0 500'") == "INSERT 0 500"
        new = await connection.fetch("INSERT INTO t SELECT 5 + id FROM t LIMIT 3 RETURNING id")
        assert len(new) == 3
        with pytest.raises(asyncpg.UndefinedColumnError):
            await connection.fetch("SELECT n FROM t")

    profile = recorded(postgresql, work)
    assert owned(asyncpg, ASYNCPG) == before
    assert by_operation(profile) == {
        ("(connect)", "connect"): 1,
        ("CREATE TEMP TABLE t(id int, name text)", "execute"): 1,
        ("INSERT INTO t VALUES ($1, $2)", "executemany"): 1,
        ("UPDATE t SET name = ? WHERE id < $1", "execute"): 1,
        ("SELECT id FROM t", "execute"): 1,
        ("SELECT * FROM t WHERE id > $1", "execute"): 1,
        ("SELECT id, name FROM t", "execute"): 1,
        ("SELECT name FROM t WHERE id = $1", "execute"): 2,
        ("SELECT ?", "execute"): 1,
        ("SELECT ? FROM t", "execute"): 1,
        ("INSERT INTO t SELECT ? + id FROM t LIMIT ? RETURNING id", "execute"): 1,
        ("(close)", "close"): 1,
    }
    assert {one: rows for one, rows in by_operation(profile, "rows").items() if rows} == {
        ("UPDATE t SET name = ? WHERE id < $1", "execute"): 4,
        ("SELECT id FROM t", "execute"): 10,
        ("SELECT * FROM t WHERE id > $1", "execute"): 7,
        ("SELECT id, name FROM t", "execute"): 10,
        ("SELECT name FROM t WHERE id = $1", "execute"): 1,
        ("SELECT ?", "execute"): 1,
        ("INSERT INTO t SELECT ? + id FROM t LIMIT ? RETURNING id", "execute"): 3,
    }
    (error,) = profile.errors
    assert error.exception == "asyncpg.exceptions.UndefinedColumnError"


def test_prepared_statements_and_cursors(postgresql: str) -> None:
    """Their text is in the object. A cursor's rows come in batches."""

    async def work(connection: Any) -> None:
        prepared = await connection.prepare("SELECT n FROM generate_series(1, $1::int) AS n")
        for number in range(5):
            assert len(await prepared.fetch(number)) == number
        assert await prepared.fetchval(3) == 1
        assert await prepared.fetchrow(0) is None
        async with connection.transaction():
            async with connection.transaction():
                found = [row async for row in connection.cursor("SELECT generate_series(1, 120)")]
                assert len(found) == 120
            cursor = await connection.cursor("SELECT generate_series(1, 7) AS m")
            assert len(await cursor.fetch(4)) == 4
            assert await cursor.fetchrow()
        with pytest.raises(asyncpg.DivisionByZeroError):
            await (await connection.prepare("SELECT 1 / $1::int")).fetch(0)

    profile = recorded(postgresql, work)
    found, rows = by_operation(profile), by_operation(profile, "rows")
    prepared = "SELECT n FROM generate_series(?, $1::int) AS n"
    assert (found[prepared, "execute"], rows[prepared, "execute"]) == (7, 11)
    text = "SELECT generate_series(?, ?)"
    assert (found[text, "execute"], rows[text, "execute"]) == (1, 50)
    assert (found[text, "fetchmany"], rows[text, "fetchmany"]) == (2, 70)
    text += " AS m"
    assert (found[text, "execute"], rows[text, "execute"]) == (1, 0)
    assert (found[text, "fetchmany"], rows[text, "fetchmany"]) == (2, 5)
    assert {one: found[one, "execute"] for one in ("BEGIN", "COMMIT", "SAVEPOINT ?")} == {
        "BEGIN": 1,
        "COMMIT": 1,
        "SAVEPOINT ?": 1,
    }
    (error,) = profile.errors
    assert error.exception == "asyncpg.exceptions.DivisionByZeroError"


def test_pools_and_many_at_once(postgresql: str) -> None:
    """Each query has the line that sent it, through a pool and in tasks. Waiting for a connection
    does not count as database time.
    """
    waits_s: list[float] = []

    async def main() -> list[int]:
        host = host_of(postgresql)
        async with asyncpg.create_pool(host=host, user="postgres", min_size=1, max_size=1) as pool:
            begin_s = time.perf_counter()

            def note_wait(_: object) -> None:
                waits_s.append(time.perf_counter() - begin_s)

            tasks = [
                asyncio.ensure_future(pool.fetchval("SELECT $1::int, pg_sleep(0.05)", number))
                for number in range(8)
            ]
            for task in tasks:
                task.add_done_callback(note_wait)
            found = await asyncio.gather(*tasks)
            async with pool.acquire() as connection:
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(connection.fetch("SELECT pg_sleep(60)"), 0.05)
                coroutine = connection.fetch("SELECT 'never awaited'")
                assert asyncio.iscoroutine(coroutine)
                coroutine.close()
        return list(found)

    with queryprof.profile() as recording:
        assert asyncio.run(main()) == list(range(8))
    profile = recording.profile
    of_pool = [
        one for one in profile.aggregates if "0.05" in one.statement or "$1" in one.statement
    ]
    assert sum(one.count for one in of_pool) == 8
    assert {Path(one.path[0].file).name for one in of_pool} == {Path(__file__).name}
    # Each waits for those before it, which sleep 50 ms: 1.4 s in total, on any machine.
    assert 0.4e9 <= sum(one.total_ns for one in of_pool) <= sum(waits_s) * 1e9 - 1.3e9
    assert by_operation(profile)["SELECT pg_sleep(?)", "execute"] == 1
    assert not any("never awaited" in one.statement for one in profile.aggregates)
    (cancelled,) = (one for one in profile.errors if "Cancelled" in one.exception)
    assert cancelled.exception == "asyncio.exceptions.CancelledError"


def test_repeated_parameters_are_all_of_them(postgresql: str) -> None:
    """Calls that differ only in the second parameter are no repetitions."""

    async def work(connection: Any) -> None:
        for number in range(2000):
            await connection.fetchval("SELECT $1::int + $2::int", 1, number)
            await connection.fetchval("SELECT $1::int * $2::int", 1, 1)

    profile = recorded(postgresql, work)
    repeated = {one.statement: one.repeats for one in profile.parameters}
    assert not repeated.get("SELECT $1::int + $2::int")
    assert repeated["SELECT $1::int * $2::int"]


def test_sqlalchemy_over_asyncpg(postgresql: str) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from sqlalchemy.ext.asyncio import create_async_engine

    async def main() -> None:
        engine = create_async_engine(f"postgresql+asyncpg://postgres@/?host={host_of(postgresql)}")
        async with engine.begin() as connection:
            for least in range(4):
                found = await connection.execute(
                    sqlalchemy.text("SELECT n FROM generate_series(1, 7) AS n WHERE n > :least"),
                    {"least": least},
                )
                assert len(found.fetchall()) == 7 - least
        await engine.dispose()

    with queryprof.profile() as recording:
        asyncio.run(main())
    profile = recording.profile
    statement = "SELECT n FROM generate_series(?, ?) AS n WHERE n > $1"
    assert by_operation(profile, "rows")[statement, "execute"] == 7 + 6 + 5 + 4
    (one,) = (one for one in profile.aggregates if one.statement == statement)
    assert one.count == 4
    assert Path(one.path[0].file).name == Path(__file__).name


def test_a_pool_s_reset_is_no_query(postgresql: str) -> None:
    """The program is healthy: the pool's statements at each release have no result to keep."""

    async def main() -> None:
        host = host_of(postgresql)
        async with asyncpg.create_pool(host=host, user="postgres", min_size=2, max_size=2) as pool:
            for _ in range(200):
                await pool.fetchval("SELECT count(*) FROM pg_class WHERE oid > $1", _)

    with queryprof.profile() as recording:
        asyncio.run(main())
    resets = [one for one in recording.profile.aggregates if "RESET ALL" in one.statement]
    assert sum(one.count for one in resets) == 200
    assert not [one for one in recording.findings if "RESET ALL" in one.statement]
