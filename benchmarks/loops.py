"""Measure the cost of recording an event loop: `make bench`.

Tasks alternate between bare and recorded, in one process, for many rounds. Every fifteenth round
uses asyncio's debug mode. The output is the shortest bare time, and the median ratio of each round
to its bare time. An idle loop runs in its own process, bare and recorded. Its figure is the CPU
time of all threads as a share of the running time.

    python benchmarks/loops.py [--rounds 15] [--idle-s 20]
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from queryprof.recorder.session import session

TASKS = 100_000
DEBUG_EVERY = 15


async def nothing() -> None:
    """The smallest possible task."""


async def tasks_one_by_one() -> None:
    for _ in range(TASKS):
        await asyncio.create_task(nothing())


async def tasks_together() -> None:
    for _ in range(100):
        await asyncio.gather(*(nothing() for _ in range(TASKS // 100)))


async def switches() -> None:
    for _ in range(TASKS):
        await asyncio.sleep(0)


CASES: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
    "100,000 tiny tasks, one by one": tasks_one_by_one,
    "100,000 tiny tasks, 1,000 together": tasks_together,
    "100,000 switches (sleep(0))": switches,
}
TOOLS = ("bare", "queryprof", "debug mode")

IDLE = """
import asyncio, sys, time
if sys.argv[1] == "queryprof":
    import queryprof
    queryprof.install("/dev/shm/idle.qprof" if sys.platform == "linux" else "idle.qprof")
async def main():
    await asyncio.sleep(2.5)  # the first flush imports what it needs
    before = time.process_time()
    await asyncio.sleep(float(sys.argv[2]))
    print((time.process_time() - before) / float(sys.argv[2]))
asyncio.run(main())
"""


def run_ns(case: str, tool: str) -> float:
    """Return the ns per task of one run."""
    if tool == "queryprof":
        session.libraries.attach()
    try:
        started = time.perf_counter_ns()
        asyncio.run(CASES[case](), debug=tool == "debug mode")
        return (time.perf_counter_ns() - started) / TASKS
    finally:
        if tool == "queryprof":
            session.libraries.detach()


def idle_share(tool: str, seconds: float) -> float:
    """Return the CPU time of an idle loop's process, as a share of the running time."""
    output = subprocess.run(
        [sys.executable, "-c", IDLE, tool, str(seconds)], capture_output=True, text=True, check=True
    ).stdout
    return float(output)


@click.command()
@click.option("--rounds", default=15, show_default=True)
@click.option("--idle-s", default=20.0, show_default=True, help="How long idle loops run.")
def main(rounds: int, idle_s: float) -> None:
    """Measure, and print a Markdown table."""
    times: dict[tuple[str, str], list[float]] = {}
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # debug mode logs slow steps
    session.start()
    session.libraries.detach()  # each tool runs in its turn
    for number in track(range(rounds), "measuring", console=Console(stderr=True), transient=True):
        for case in CASES:
            for tool in TOOLS if number % DEBUG_EVERY == 0 else TOOLS[:2]:
                times.setdefault((case, tool), []).append(run_ns(case, tool))
    session.stop()
    print("| | bare |", " | ".join(TOOLS[1:]), "|")
    print("|---|" + "---:|" * len(TOOLS))
    for case in CASES:
        bare = times[case, "bare"]
        ratios = [
            statistics.median(t / b for b, t in zip(bare, times[case, tool], strict=False))
            for tool in TOOLS[1:]
        ]
        print(f"| {case} | {min(bare):,.0f} ns |", " | ".join(f"x{r:.2f}" for r in ratios), "|")
    idle = [idle_share(tool, idle_s) for tool in TOOLS[:2]]
    print(f"| an idle loop: CPU time | {idle[0]:.2%} | {idle[1]:.2%} | |")


if __name__ == "__main__":
    main()
