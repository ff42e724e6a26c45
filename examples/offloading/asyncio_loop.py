"""The experiment on asyncio: its loop, its sockets, and aiosqlite, which needs this loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosqlite
from pairs import INSERT, SELECT, Channel, Loop, Row, connection_type, framed, limits

T = TypeVar("T")


class AsyncioChannel:
    """Sends and receives on the loop; the socket never blocks."""

    def __init__(self, loop: asyncio.AbstractEventLoop, end: socket.socket) -> None:
        end.setblocking(False)
        self._loop = loop
        self._end = end

    async def send(self, message: bytes) -> None:
        """Returns when the operating system has taken the message."""
        await self._loop.sock_sendall(self._end, framed(message))

    async def receive(self) -> bytes:
        """The next message."""
        (size,) = struct.unpack("!I", await self._read_exactly(4))
        return await self._read_exactly(size)

    async def _read_exactly(self, size: int) -> bytes:
        buffer = bytearray()
        while len(buffer) < size:
            if not (part := await self._loop.sock_recv(self._end, size - len(buffer))):
                raise ConnectionError("the other end has closed the connection")
            buffer += part
        return bytes(buffer)


class AsyncioLoop:
    """The running loop with a pool of threads."""

    def __init__(self, threads: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(threads))

    def in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        """The work's result, from a thread of the pool."""
        return self._loop.run_in_executor(None, work)

    def channel(self, end: socket.socket) -> Channel:
        """Network work on the loop."""
        return AsyncioChannel(self._loop, end)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> object:
        """Calls back once."""
        return self._loop.call_later(delay_s, callback)

    async def together(self, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Runs all at once and returns when all have finished."""
        await asyncio.gather(*work)


class AiosqliteDatabase:
    """Hands every call to aiosqlite's thread, one for each connection."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    @classmethod
    async def opened(cls, path: Path, slow_disk_s: float) -> AiosqliteDatabase:
        """Connects, which starts the thread."""
        return cls(await aiosqlite.connect(path, factory=connection_type(slow_disk_s)))

    async def read(self, low: int) -> list[Row]:
        """One answer's rows."""
        rows = await self._connection.execute_fetchall(SELECT, limits(low))
        return cast("list[Row]", rows)

    async def insert(self, rows: Sequence[Row]) -> None:
        """Inserts and commits, in two calls."""
        await self._connection.executemany(INSERT, rows)
        await self._connection.commit()

    async def close(self) -> None:
        """Ends the thread."""
        await self._connection.close()


def run(main: Callable[[Loop], Coroutine[Any, Any, T]], threads: int) -> T:
    """Runs a coroutine function on a new loop."""

    async def start() -> T:
        return await main(AsyncioLoop(threads))

    return asyncio.run(start())
