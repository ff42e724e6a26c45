r"""One run: all pairs at work on one event loop in one configuration, and what was measured.

A program of its own, so that no run inherits threads, memory or caches from another one. Knows
nothing of other runs, nor of statistics over them: offloading.py.

    python one_run.py --off file --requests 10 --rows 40000 --driver threads --slow-disk-s 0 \
        --loop asyncio DATABASE...
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pairs import (
    FILE,
    KINDS,
    ROWS_AN_ANSWER,
    Database,
    Loop,
    PlacedDatabase,
    Places,
    ask,
    connected_ends,
    disconnect,
    serve,
)

DRIVERS = ("threads", "aiosqlite")
LOOPS = ("asyncio", "twisted")
HEARTBEAT_S = 0.010
STALL_S = 0.050


@dataclass(frozen=True)
class Settings:
    """The settings of a run."""

    off: frozenset[str]
    databases: tuple[Path, ...]
    requests: int
    rows: int
    driver: str
    slow_disk_s: float


@dataclass(frozen=True)
class Figures:
    """The figures of a run. Times are in seconds."""

    total_s: float
    requests_per_s: float
    latency_p50_s: float
    latency_p99_s: float
    lag_p99_s: float
    lag_max_s: float
    stalls: int
    cpu_s: float


class Heartbeat:
    """A timer of the loop on a fixed schedule. Its lateness is the loop's lag.

    While the loop is stalled, each missed beat counts with the lag that it would have had. So a
    long stall has a weight in the p99 in proportion to its length.
    """

    def __init__(self, loop: Loop) -> None:
        self.lags_s: list[float] = []
        self.stalls = 0
        self._loop = loop
        self._stopped = False
        self._due_s = time.perf_counter() + HEARTBEAT_S
        self._schedule()

    def stop(self) -> None:
        """Count the beats due until now, and stop."""
        self._count()
        self._stopped = True

    def _schedule(self) -> None:
        self._loop.call_later(max(0.0, self._due_s - time.perf_counter()), self._beat)

    def _beat(self) -> None:
        if not self._stopped:
            self._count()
            self._schedule()

    def _count(self) -> None:
        now_s = time.perf_counter()
        self.stalls += now_s - self._due_s > STALL_S
        while self._due_s <= now_s:
            self.lags_s.append(now_s - self._due_s)
            self._due_s += HEARTBEAT_S


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


async def opened(places: Places, path: Path, settings: Settings) -> Database:
    """Return a connection: aiosqlite's if it takes file work off the loop, otherwise sqlite3's."""
    if settings.driver == "aiosqlite" and FILE in settings.off:
        from asyncio_loop import AiosqliteDatabase

        return await AiosqliteDatabase.opened(path, settings.slow_disk_s)
    return PlacedDatabase(places, path, settings.slow_disk_s)


def lows(pair: int, settings: Settings) -> list[int]:
    """Return the first values of a client's ranges, different for each request."""
    ranges = settings.rows // ROWS_AN_ANSWER
    first = pair * settings.requests
    return [(first + i) % ranges * ROWS_AN_ANSWER for i in range(settings.requests)]


async def measure(loop: Loop, settings: Settings) -> Figures:
    """Run all pairs to completion."""
    places = Places(loop, settings.off)
    latencies_s: list[float] = []
    async with contextlib.AsyncExitStack() as stack:
        work = []
        for pair, path in enumerate(settings.databases):
            reading, inserting = [await opened(places, path, settings) for _ in range(2)]
            stack.push_async_callback(reading.close)
            stack.push_async_callback(inserting.close)
            server, client = connected_ends()
            stack.callback(disconnect, server, client)
            work += [
                serve(places, places.channel(server), reading, settings.requests),
                ask(places, places.channel(client), inserting, lows(pair, settings), latencies_s),
            ]
        heartbeat = Heartbeat(loop)
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        await loop.together(work)
        total_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
        heartbeat.stop()
    return Figures(
        total_s=total_s,
        requests_per_s=len(latencies_s) / total_s,
        latency_p50_s=quantile(latencies_s, 0.50),
        latency_p99_s=quantile(latencies_s, 0.99),
        lag_p99_s=quantile(heartbeat.lags_s, 0.99),
        lag_max_s=max(heartbeat.lags_s),
        stalls=heartbeat.stalls,
        cpu_s=cpu_s,
    )


def main() -> None:
    """Read the settings, run, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description="One run in one configuration.")
    parser.add_argument("databases", nargs="+", type=Path, help="One for each pair.")
    parser.add_argument("--off", nargs="*", choices=KINDS, default=[])
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--driver", choices=DRIVERS, required=True)
    parser.add_argument("--slow-disk-s", type=float, required=True)
    parser.add_argument("--loop", choices=LOOPS, required=True)
    given = vars(parser.parse_args())
    loop = given.pop("loop")
    settings = Settings(
        **{**given, "off": frozenset(given["off"]), "databases": tuple(given["databases"])}
    )
    threads = 2 * len(settings.databases)  # all ends may block in a receive at once
    if loop == "twisted":
        from twisted_loop import run
    else:
        from asyncio_loop import run
    figures = run(lambda running: measure(running, settings), threads)
    print(json.dumps(dataclasses.asdict(figures)))


if __name__ == "__main__":
    main()
