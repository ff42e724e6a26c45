"""Measure whether moving the database off the event loop helps: `make responsiveness`.

Starts each version of server.py under `queryprof run` and sends it requests at rising rates. The
requests are sent on schedule, without waiting for answers (an open loop): a client that waited for
slow answers would send fewer requests and hide the delay. Prints the response times, the
throughput, and the lag of the servers' loops.

    python responsiveness.py [--seconds 10] [--rates 1,2,5,10,15,20]
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import httpx
from rich.console import Console
from rich.table import Table

from queryprof.analysis.summary import summarize_durations
from queryprof.analysis.units import duration
from queryprof.collect.reader import read_profile
from queryprof.model import Distribution
from queryprof.report.terminal.loops import lag_chart

CHANNELS = 1200
ITEMS = 100_000
WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "harbor", "iris", "jade")
VERSIONS = ("blocking", "threaded")
SEED = 1
START_TIMEOUT_S = 30


@dataclass(frozen=True)
class Answer:
    """The response time and size of the answer to a request."""

    response_s: float
    size: int


def make_database(path: Path) -> None:
    """Write 1,200 channels with 100,000 items, always the same."""
    rng = random.Random(SEED)
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE channel (id INTEGER PRIMARY KEY, name TEXT);"
        "CREATE TABLE item (id INTEGER PRIMARY KEY, channel_id INTEGER REFERENCES channel,"
        " title TEXT, size INTEGER, created INTEGER);"
        "CREATE INDEX item_of_channel ON item (channel_id);"
    )
    connection.executemany(
        "INSERT INTO channel (name) VALUES (?)",
        [(f"{rng.choice(WORDS)} {i}",) for i in range(CHANNELS)],
    )
    connection.executemany(
        "INSERT INTO item (channel_id, title, size, created) VALUES (?, ?, ?, ?)",
        [
            (
                rng.randrange(CHANNELS) + 1,
                " ".join(rng.choices(WORDS, k=6)),
                rng.randrange(10**9),
                i,
            )
            for i in range(ITEMS)
        ],
    )
    connection.commit()
    connection.close()


class Server:
    """A version of the server, recorded, with its own database."""

    def __init__(self, version: str, directory: Path) -> None:
        database = directory / f"{version}.db"
        make_database(database)
        self.trace = directory / f"{version}.qprof"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._process = subprocess.Popen(
            [
                Path(sys.executable).with_name("queryprof"),
                "run",
                "--no-report",
                "-o",
                self.trace,
                Path(__file__).with_name("server.py"),
                version,
                database,
                str(self.port),
            ],
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._process.kill()
                raise click.ClickException(f"the {version} server does not start")
            time.sleep(0.05)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> Distribution:
        """Stop the server, and return the lag of its loop."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=30)
        lags = [loop.beat_lag for loop in read_profile(str(self.trace)).loops]
        return max(lags, key=lambda lag: lag.count)


async def send(port: int, rate: float, seconds: float, seed: int) -> list[Answer]:
    """Send requests at a rate, each on schedule, and return the answers."""
    rng = random.Random(seed)
    paths = [
        (
            f"/search?q={rng.choice(WORDS)}%20{rng.choice(WORDS)}%20{rng.choice(WORDS)}"
            if rng.random() < 0.5
            else f"/popular?from={rng.randrange(1000)}"
        )
        for _ in range(int(rate * seconds))
    ]
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    base = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base, timeout=60, limits=limits) as client:

        async def ask(path: str, due_s: float) -> Answer:
            response = await client.get(path)
            response.raise_for_status()
            return Answer(time.perf_counter() - due_s, len(response.content))

        start_s = time.perf_counter()
        tasks = []
        for number, path in enumerate(paths):
            due_s = start_s + number / rate
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            tasks.append(asyncio.create_task(ask(path, due_s)))
        return await asyncio.gather(*tasks)


FIGURES = ("average", "minimum", "maximum", "std dev", "KB/s", "responses/s")


def figures(answers: Sequence[Answer], rate: float) -> dict[str, float]:
    """Summarize the answers at one rate.

    Times are in ms. The throughput is from the first request to the last answer.
    """
    times_ms = [answer.response_s * 1000 for answer in answers]
    took_s = max(i / rate + a.response_s for i, a in enumerate(answers))
    return {
        "average": statistics.mean(times_ms),
        "minimum": min(times_ms),
        "maximum": max(times_ms),
        "std dev": statistics.stdev(times_ms) if len(times_ms) > 1 else 0.0,
        "KB/s": sum(answer.size for answer in answers) / 1000 / took_s,
        "responses/s": len(answers) / took_s,
    }


def show(results: dict[float, dict[str, dict[str, float]]], lags: dict[str, Distribution]) -> None:
    """Print the table and the chart."""
    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="underline")
    for name in ("requests/s", "version", *FIGURES):
        table.add_column(name, justify="left" if name == "version" else "right", no_wrap=True)
    for rate, versions in results.items():
        for version, values in versions.items():
            table.add_row(f"{rate:g}", version, *(f"{values[name]:,.1f}" for name in FIGURES))
        before, after = (versions[version] for version in VERSIONS)
        changes = [(after[n] / before[n] - 1) * 100 if before[n] else 0.0 for n in FIGURES]
        table.add_row("", "change %", *(f"{change:+.1f}" for change in changes), style="bold")
    console.print("Response times in ms; requests sent on schedule, while items are inserted\n")
    console.print(table)
    for version, lag in lags.items():
        lateness = summarize_durations(lag)
        console.print(
            f"\nloop lag, {version}: mean {duration(lateness.mean_ns)}, p95"
            f" {duration(lateness.p95_ns)}, max {duration(lateness.max_ns)} ({lateness.count}"
            " heartbeats)",
            end="",
        )
    console.print("\n\nShare of the heartbeats (%) up to a lag")
    console.file.write(lag_chart(lags, console.width) + "\n")


@click.command()
@click.option("--seconds", default=10.0, help="How long each rate is held.")
@click.option("--rates", default="1,2,5,10,15,20", help="Requests a second, with commas.")
def main(seconds: float, rates: str) -> None:
    """Compare a server that queries its database on the event loop with one that uses a thread."""
    results: dict[float, dict[str, dict[str, float]]] = {float(r): {} for r in rates.split(",")}
    lags: dict[str, Distribution] = {}
    with tempfile.TemporaryDirectory() as directory:
        for version in VERSIONS:
            server = Server(version, Path(directory))
            asyncio.run(send(server.port, 5, 1, SEED))  # warm
            for rate, versions in results.items():
                answers = asyncio.run(send(server.port, rate, seconds, SEED + int(rate)))
                versions[version] = figures(answers, rate)
            lags[version] = server.stop()
    show(results, lags)


if __name__ == "__main__":
    main()
