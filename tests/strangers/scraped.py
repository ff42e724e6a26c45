"""A program of the tests: change regions next to a good process, and scrape the counters of
`queryprof fleet prometheus`.

It is started as `python scraped.py ROOT FIRST LAST SEED` and prints a line for each wrong case, and
a JSON object of how many there were. A child of this process serves. This process maps the memory
of the changed regions, so that they count as its own.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families
from strangers import region_mutations

from queryprof.cli.prometheus import ServedCounters, _MetricsServer
from queryprof.region import region_files
from queryprof.region.live import ActivityReader

HANG_S = 60
CALLS_OF_ONE, CALLS_BEFORE = 2, 1
"""The calls of each execution, with its fetch; and the calls to connect."""

FORMATS = ("", "application/openmetrics-text; version=1.0.0", "text/plain", "*/*; version=x")
WORKS = """
import sqlite3, sys
from queryprof.region import region_files
region_files.SHARED_MEMORY = sys.argv[1]
import queryprof
from queryprof.core import _core
queryprof.install(sys.argv[2], window="1h")
connection = sqlite3.connect(":memory:")
print("ready", flush=True)
for line in sys.stdin:
    for number in range(int(line)):
        connection.execute("SELECT ?", (number,)).fetchall()
    _core.flush()
    print("done", flush=True)
"""


@contextmanager
def working(shared: Path, trace: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a recorded process that works on request."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKS, shared, trace],
        env={**os.environ, "QUERYPROF_SERVICE": "good"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def request(to: IO[str] | None, answers: IO[str] | None, what: object) -> str:
    """Send a request to a process. Return its answer."""
    assert to
    assert answers
    print(what, file=to, flush=True)
    return answers.readline().strip()


def serve(orders: IO[str], answers: IO[str]) -> None:
    """Serve the counters, and look at the recordings on request."""
    endpoint = ServedCounters(ActivityReader())
    server = _MetricsServer(("127.0.0.1", 0), endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], file=answers, flush=True)
    for _ in orders:
        try:
            endpoint.read_processes()
            answer = "looked"
        except Exception as error:
            answer = f"{type(error).__name__}: {error}".replace("\n", " ")
        print(answer, file=answers, flush=True)


@contextmanager
def serving() -> Iterator[tuple[IO[str], IO[str], int]]:
    """Start a serving child. Return its requests, its answers, and its port."""
    (get_order, give_order), (get_answer, give_answer) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(give_order)
            serve(open(get_order), open(give_answer, "w"))
        finally:
            os._exit(0)
    os.close(get_order)
    os.close(give_answer)
    with open(give_order, "w") as orders, open(get_answer) as answers:
        yield orders, answers, int(answers.readline())
    os.waitpid(pid, 0)


def calls_in(port: int, accept: str) -> int:
    """Return the calls of the good process in the counters."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=HANG_S) as answer:
        is_open = "openmetrics" in answer.headers["Content-Type"]
        text = answer.read().decode()
    families = (openmetrics_families if is_open else text_string_to_metric_families)(text)
    return sum(
        int(sample.value)
        for family in families
        for sample in family.samples
        if sample.name == "queryprof_calls_total" and sample.labels["service"] == "good"
    )


def main(root: Path, first: int, last: int, seed: str) -> None:
    """Run the cases with these numbers."""
    case, shared = (
        root / "case",
        Path(tempfile.mkdtemp("", "strangers-", region_files.SHARED_MEMORY)),
    )
    shutil.rmtree(case, ignore_errors=True)
    for name in ("place", "out"):
        (case / name).mkdir(parents=True)
    region_files.SHARED_MEMORY = str(shared)
    try:
        with working(shared, case / "place" / "good.qprof") as good, serving() as served:
            scrape(root, range(first, last), seed, good, served)
    finally:
        shutil.rmtree(shared)
    print(json.dumps({"cases": last - first, "prometheus": last - first}))


def scrape(
    root: Path,
    numbers: range,
    seed: str,
    good: subprocess.Popen[str],
    served: tuple[IO[str], IO[str], int],
) -> None:
    """Change a region for each number, look, and compare the counters."""
    orders, answers, port = served
    case, shared = root / "case", Path(region_files.SHARED_MEMORY)
    (source,) = (root / "recorded" / "shm").glob("bad running *")
    started, executions = region_files.process_start_ticks(os.getpid()), 0
    for number in numbers:
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        draw = random.Random(f"{seed} prometheus {number}")
        path = shared / f"queryprof-{os.getuid()}-0123456789abcdef-{os.getpid()}-{number}"
        region_mutations.copy_region(source, path)
        region_mutations.live(path, os.getpid(), started)
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
            looks = [request(orders, answers, "look")] if draw.random() < 0.5 else []
            how = region_mutations.region(draw, path, case)
            looks.append(request(orders, answers, "look"))
            count = draw.randrange(1, 10)
            executions += count
            request(good.stdin, good.stdout, count)
            looks.append(request(orders, answers, "look"))
            try:
                found: object = calls_in(port, draw.choice(FORMATS))
            except (OSError, ValueError) as error:
                found = repr(error)
        wanted = CALLS_BEFORE + executions * CALLS_OF_ONE
        if {*looks} != {"looked"} or found != wanted:
            wrong = f"{looks}, {found} calls of {wanted}"
            print(f"prometheus {number} of {seed}: {how}: {wrong}", flush=True)
            if "looked" not in looks[-1:]:
                break
        for one in shared.iterdir():
            if f"-{os.getpid()}-{number}" in one.name or "good.qprof" in one.name:
                one.unlink() if not one.is_dir() or one.is_symlink() else shutil.rmtree(one)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
