"""An API server over a database of channels and their items, in two versions.

`blocking` queries SQLite on the event loop. `threaded` passes every call to aiosqlite's worker
thread, which serves a queue in order. The queries, the answers, and the background inserts are the
same.

    python server.py blocking|threaded DATABASE PORT
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import AsyncIterator
from typing import Protocol

import aiosqlite
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

SEARCH = """
    SELECT item.id, item.title, item.size, item.created, channel.name
    FROM item JOIN channel ON channel.id = item.channel_id
    WHERE item.title LIKE ? ORDER BY item.created DESC LIMIT 50
"""
POPULAR = """
    SELECT channel.id, channel.name, count(*) AS items, sum(item.size) AS size
    FROM channel JOIN item ON item.channel_id = channel.id
    WHERE channel.id BETWEEN ? AND ? + 150 GROUP BY channel.id ORDER BY items DESC LIMIT 50
"""
INSERT = "INSERT INTO item (channel_id, title, size, created) VALUES (?, ?, ?, ?)"

INSERTS_A_TIME = 200
INSERT_INTERVAL_S = 0.25

Parameters = tuple[object, ...]


class Database(Protocol):
    """The functions that both versions have."""

    async def open(self, path: str) -> None: ...
    async def rows(self, sql: str, parameters: Parameters) -> list[Parameters]: ...
    async def insert(self, items: list[Parameters]) -> None: ...
    async def close(self) -> None: ...


class Blocking:
    """Query on the event loop, which is blocked until the answer."""

    async def open(self, path: str) -> None:
        self._connection = sqlite3.connect(path)

    async def rows(self, sql: str, parameters: Parameters) -> list[Parameters]:
        return self._connection.execute(sql, parameters).fetchall()

    async def insert(self, items: list[Parameters]) -> None:
        self._connection.executemany(INSERT, items)
        self._connection.commit()

    async def close(self) -> None:
        self._connection.close()


class Threaded:
    """Query in aiosqlite's thread, while the loop continues."""

    async def open(self, path: str) -> None:
        self._connection = await aiosqlite.connect(path)

    async def rows(self, sql: str, parameters: Parameters) -> list[Parameters]:
        return list(await self._connection.execute_fetchall(sql, parameters))

    async def insert(self, items: list[Parameters]) -> None:
        await self._connection.executemany(INSERT, items)
        await self._connection.commit()

    async def close(self) -> None:
        await self._connection.close()


async def fill(database: Database) -> None:
    """Insert new items in the background, a batch at a time."""
    number = 0
    while True:
        await asyncio.sleep(INSERT_INTERVAL_S)
        items = [
            ((number + i) % 1200 + 1, f"new item {number + i}", number % 1000, number + i)
            for i in range(INSERTS_A_TIME)
        ]
        number += INSERTS_A_TIME
        await database.insert(items)


def application(database: Database, path: str) -> Starlette:
    """Return the application: the routes, and the background task."""

    async def search(request: Request) -> JSONResponse:
        word = request.query_params["q"]
        return JSONResponse(await database.rows(SEARCH, (f"%{word}%",)))

    async def popular(request: Request) -> JSONResponse:
        first = int(request.query_params["from"])
        return JSONResponse(await database.rows(POPULAR, (first, first)))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await database.open(path)
        filling = asyncio.create_task(fill(database))
        yield
        filling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await filling
        await database.close()

    routes = [Route("/search", search), Route("/popular", popular)]
    return Starlette(routes=routes, lifespan=lifespan)


if __name__ == "__main__":
    version, path, port = sys.argv[1:]
    database: Database = Blocking() if version == "blocking" else Threaded()
    uvicorn.run(application(database, path), port=int(port), loop="asyncio", log_level="warning")
