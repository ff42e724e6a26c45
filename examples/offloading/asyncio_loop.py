"""The experiment on asyncio: its loop and sockets, and aiosqlite, which needs this loop."""

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
    """Send and receive on the loop. The socket never blocks."""

    def __init__(self, loop: asyncio.AbstractEventLoop, end: socket.socket) -> None:
        end.setblocking(False)
        self._loop = loop
        self._end = end

    async def send(self, message: bytes) -> None:
        """Return when the operating system has accepted the message."""
        await self._loop.sock_sendall(self._end, framed(message))

    async def receive(self) -> bytes:
        """Return the next message."""
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
    """The running loop with a thread pool."""

    def __init__(self, threads: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(threads))

    def in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run work in a thread of the pool."""
        return self._loop.run_in_executor(None, work)

    def channel(self, end: socket.socket) -> Channel:
        """Return a channel on the loop."""
        return AsyncioChannel(self._loop, end)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> object:
        """Call the callback once."""
        return self._loop.call_later(delay_s, callback)

    async def together(self, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Run all coroutines at once. Returns when all have finished."""
        await asyncio.gather(*work)


class AiosqliteDatabase:
    """Pass every call to aiosqlite's thread. Each connection has its own."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    @classmethod
    async def opened(cls, path: Path, slow_disk_s: float) -> AiosqliteDatabase:
        """Connect, which starts the thread."""
        return cls(await aiosqlite.connect(path, factory=connection_type(slow_disk_s)))

    async def read(self, low: int) -> list[Row]:
        """Return the rows of one answer."""
        rows = await self._connection.execute_fetchall(SELECT, limits(low))
        return cast("list[Row]", rows)

    async def insert(self, rows: Sequence[Row]) -> None:
        """Insert and commit, in two calls."""
        await self._connection.executemany(INSERT, rows)
        await self._connection.commit()

    async def close(self) -> None:
        """Close the connection, which ends the thread."""
        await self._connection.close()


def run(main: Callable[[Loop], Coroutine[Any, Any, T]], threads: int) -> T:
    """Run a coroutine function on a new loop."""

    async def start() -> T:
        return await main(AsyncioLoop(threads))

    return asyncio.run(start())
