"""The work of the experiment: pairs of a client and a server, each pair with its own database.

A server reads rows (file work). It processes and compresses them (compute work) and sends them
(network work). Its client receives, decompresses and parses the rows, and inserts them. Every piece
of work goes through `Places.do`, which does it on the event loop or in a thread. `Loop` is the
interface of the event loop: asyncio_loop.py and twisted_loop.py. This module starts no process and
prints nothing.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
import statistics
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

FILE, COMPUTE, NETWORK = KINDS = ("file", "compute", "network")

ROWS_AN_ANSWER = 600
WINDOW_ROWS = 8
SCATTER = 7919
"""A prime, so that neighbours in the table have distant values."""

SCHEMA = """
    CREATE TABLE reading (id INTEGER PRIMARY KEY, value INTEGER, level REAL, note TEXT);
    CREATE TABLE copy (id INTEGER PRIMARY KEY, value INTEGER, smooth REAL, score REAL, note TEXT);
"""
SELECT = "SELECT id, value, level, note FROM reading WHERE value BETWEEN ? AND ? ORDER BY id"
INSERT = "INSERT INTO copy (value, smooth, score, note) VALUES (?, ?, ?, ?)"

Row = tuple[Any, ...]
T = TypeVar("T")


class Channel(Protocol):
    """One end of a connection. Each message follows its length."""

    async def send(self, message: bytes) -> None: ...
    async def receive(self) -> bytes: ...


class Loop(Protocol):
    """The functions that the experiment needs from an event loop with a thread pool."""

    def in_thread(self, work: Callable[[], T]) -> Awaitable[T]: ...
    def channel(self, end: socket.socket) -> Channel: ...
    def call_later(self, delay_s: float, callback: Callable[[], None]) -> object: ...
    async def together(self, work: Sequence[Coroutine[Any, Any, None]]) -> None: ...


class Database(Protocol):
    """A connection to a pair's database."""

    async def read(self, low: int) -> list[Row]: ...
    async def insert(self, rows: Sequence[Row]) -> None: ...
    async def close(self) -> None: ...


@dataclass(frozen=True)
class Places:
    """Decides where each kind of work is done."""

    loop: Loop
    off: frozenset[str]

    async def do(self, kind: str, work: Callable[[], T]) -> T:
        """Return the work's result, computed in a thread if its kind is off the loop."""
        if kind in self.off:
            return await self.loop.in_thread(work)
        return work()

    def channel(self, end: socket.socket) -> Channel:
        """Return a channel: the loop's own, or off the loop, one that blocks in threads."""
        return ThreadChannel(self.loop, end) if NETWORK in self.off else self.loop.channel(end)


def fill(path: Path, rows: int) -> None:
    """Create a database with readings, always the same, and an empty table for copies."""
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.executemany(
        "INSERT INTO reading (value, level, note) VALUES (?, ?, ?)",
        (
            (
                i * SCATTER % rows,
                i * 0.618034 % 1,
                f"reading {i * 31337 % 99991} of sensor {i % 97}",
            )
            for i in range(rows)
        ),
    )
    connection.commit()
    connection.close()


def connection_type(slow_disk_s: float) -> type[sqlite3.Connection]:
    """Return a connection type whose calls take longer, as with a slower disk."""

    class SlowConnection(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            time.sleep(slow_disk_s)
            return super().execute(*arguments)

        def executemany(self, *arguments: Any) -> sqlite3.Cursor:
            time.sleep(slow_disk_s)
            return super().executemany(*arguments)

        def commit(self) -> None:
            time.sleep(slow_disk_s)
            super().commit()

    return SlowConnection if slow_disk_s else sqlite3.Connection


def limits(low: int) -> tuple[int, int]:
    """Return the parameters of SELECT for one answer."""
    return low, low + ROWS_AN_ANSWER - 1


class PlacedDatabase:
    """Call sqlite3 on the loop or in a thread."""

    def __init__(self, places: Places, path: Path, slow_disk_s: float) -> None:
        self._places = places
        self._connection = sqlite3.connect(
            path, factory=connection_type(slow_disk_s), check_same_thread=False
        )

    async def read(self, low: int) -> list[Row]:
        """Return the rows of one answer."""
        return await self._places.do(
            FILE, lambda: self._connection.execute(SELECT, limits(low)).fetchall()
        )

    async def insert(self, rows: Sequence[Row]) -> None:
        """Insert and commit, in one piece of work."""

        def insert() -> None:
            self._connection.executemany(INSERT, rows)
            self._connection.commit()

        await self._places.do(FILE, insert)

    async def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def read_exactly(end: socket.socket, size: int) -> bytes:
    """Receive `size` bytes, and block until they have arrived."""
    buffer = bytearray()
    while len(buffer) < size:
        if not (part := end.recv(size - len(buffer))):
            raise ConnectionError("the other end has closed the connection")
        buffer += part
    return bytes(buffer)


class ThreadChannel:
    """Send and receive in threads, which block."""

    def __init__(self, loop: Loop, end: socket.socket) -> None:
        self._loop = loop
        self._end = end

    async def send(self, message: bytes) -> None:
        """Return when the operating system has accepted the message."""
        await self._loop.in_thread(lambda: self._end.sendall(framed(message)))

    async def receive(self) -> bytes:
        """Return the next message."""

        def receive() -> bytes:
            (size,) = struct.unpack("!I", read_exactly(self._end, 4))
            return read_exactly(self._end, size)

        return await self._loop.in_thread(receive)


def framed(message: bytes) -> bytes:
    """Prefix a message with its length."""
    return struct.pack("!I", len(message)) + message


def answer(rows: Sequence[Row]) -> bytes:
    """The compute work of a server: smooth, score and compress."""
    levels = [level for _, _, level, _ in rows]
    mean, spread = statistics.fmean(levels), statistics.pstdev(levels) or 1.0
    scored = []
    for i, (_, value, level, note) in enumerate(rows):
        window = levels[max(0, i + 1 - WINDOW_ROWS) : i + 1]
        scored.append((value, sum(window) / len(window), (level - mean) / spread, note))
    return zlib.compress(json.dumps(scored).encode())


def parsed(message: bytes) -> list[Row]:
    """The compute work of a client: return the rows in an answer."""
    return [tuple(row) for row in json.loads(zlib.decompress(message))]


async def serve(places: Places, channel: Channel, database: Database, requests: int) -> None:
    """The server of a pair: answer `requests` requests."""
    for _ in range(requests):
        rows = await database.read(int(await channel.receive()))
        await channel.send(await places.do(COMPUTE, partial(answer, rows)))


async def ask(
    places: Places,
    channel: Channel,
    database: Database,
    lows: Sequence[int],
    latencies_s: list[float],
) -> None:
    """The client of a pair: note the time of each request until its rows are inserted."""
    for low in lows:
        start_s = time.perf_counter()
        await channel.send(str(low).encode())
        rows = await places.do(COMPUTE, partial(parsed, await channel.receive()))
        await database.insert(rows)
        latencies_s.append(time.perf_counter() - start_s)


def connected_ends() -> tuple[socket.socket, socket.socket]:
    """Return a server's and a client's end of a connection through a separate local port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    for end in (server, client):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server, client


def disconnect(*ends: socket.socket) -> None:
    """Close the connection, even while threads block in it."""
    for end in ends:
        with contextlib.suppress(OSError):  # the other end was first
            end.shutdown(socket.SHUT_RDWR)
        end.close()
