"""asyncio's loops: each stall is found with its line, and the program does not notice."""

from __future__ import annotations

import asyncio
import contextvars
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core.loop_programs import LONGEST_S, Selector, loop_of, record, until_seen

import queryprof
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile

SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
    " SELECT count(*) FROM n"
)

STALL_NS = 50_000_000
"""The setting's default."""

CLOCKS_AGREE = 0.002
"""The core's clock and Python's differ by less than this share."""


def line_of(marker: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {marker}"))


@pytest.mark.slow
def test_what_blocks_the_loop_is_found_with_its_line() -> None:
    """It may wait, run slow queries, compute in Python, or hold the GIL in C code. The report has
    the line, kind and duration.
    """
    least_ns: dict[str, int] = {}
    most_ns: dict[str, int] = {}
    connection = sqlite3.connect(":memory:")

    def timed(name: str, block: Callable[[], object]) -> None:
        start = time.perf_counter_ns()
        block()
        least_ns[name] = time.perf_counter_ns() - start

    def compute(seen: threading.Event) -> None:
        while not seen.is_set():
            pass

    def query(seen: threading.Event) -> None:
        while not seen.is_set():
            connection.execute(SLOW).fetchall()

    def hold(seen: threading.Event) -> None:
        while not seen.is_set():
            sum(range(10_000_000))

    async def waiting(seen: threading.Event) -> None:
        timed("waiting", lambda: seen.wait(LONGEST_S))  # waiting

    async def querying(seen: threading.Event) -> None:
        timed("querying", lambda: query(seen))  # querying

    async def computing(seen: threading.Event) -> None:
        timed("computing", lambda: compute(seen))  # computing

    async def holding(seen: threading.Event) -> None:
        timed("holding", lambda: hold(seen))  # holding

    async def others() -> None:
        for _ in range(100_000):
            await asyncio.sleep(0.01)

    async def main() -> None:
        other = asyncio.create_task(others())
        await asyncio.sleep(0)  # its timer is due while each of these runs
        for function in (waiting, querying, computing, holding):
            with until_seen() as seen:
                start = time.perf_counter_ns()
                await asyncio.create_task(function(seen))
                most_ns[function.__name__] = time.perf_counter_ns() - start
        other.cancel()

    profile = record(main)
    connection.close()
    found = {
        one.stall.function.function.rpartition(".")[2]: one
        for one in Report(profile).loops[0].stalls
    }
    assert {name: one.category for name, one in found.items() if name in least_ns} == {
        "waiting": "waiting",
        "querying": "database",
        "computing": "computing",
        "holding": "C code that holds the GIL",
    }
    for name, least in least_ns.items():
        stall = found[name].stall
        assert stall.count == 1
        assert least * (1 - CLOCKS_AGREE) <= stall.total_ns, name
        assert stall.total_ns <= most_ns[name] * (1 + CLOCKS_AGREE), name
        assert stall.delayed >= 1, "the other task's timer was due meanwhile"
        assert stall.delay_ns <= stall.delayed * stall.total_ns
        seen = [frame for frame in stall.path if frame.function.endswith("<lambda>")]
        assert [frame.line for frame in seen] == [line_of(name)]
    (cause,) = found["querying"].stall.causes
    assert cause.statement.startswith("WITH RECURSIVE")


BUSY = """
import asyncio, os, subprocess, sys, time
import queryprof
from queryprof.analysis.report import Report

others = [
    subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * os.cpu_count())
]

def compute():
    begun_s, found = time.thread_time(), 0
    while time.thread_time() < begun_s + 0.3:
        for number in range(100_000):
            found ^= number * number

async def main():
    compute()

try:
    with queryprof.profile() as recording:
        asyncio.run(main())
finally:
    for other in others:
        other.kill()
        other.wait()
for stall in Report(recording.profile).loops[0].stalls:
    print(stall.category, stall.stall.gil_ns / 1e6 / stall.stall.samples)
"""


@pytest.mark.once
def test_who_waits_for_a_cpu_waits_for_no_lock() -> None:
    """Other processes use the CPU most of the time, but this does not make Python code look like C
    code. It releases the lock within some switch intervals of 5 ms of its own time.
    """
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    category, waited_ms = done.stdout.split()
    assert category in ("computing", "unknown")  # what the scheduler did is read from Linux 5.9 on
    assert float(waited_ms) < 10


def test_a_healthy_program_has_no_stall() -> None:
    """The loop's idle time counts for no step."""

    async def worker() -> None:
        for _ in range(20):
            await asyncio.sleep(0.005)

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(10)))

    selector = Selector()
    start_s = time.perf_counter()
    with queryprof.profile() as recording:
        runner = asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector))
        with runner:
            runner.run(main())
    ran_s = time.perf_counter() - start_s
    loop = loop_of(recording.profile)
    longest_ns = max(step.durations.max_ns for step in loop.functions)
    # On a busy machine a step may wait for the processor as long as a stall.
    assert bool(loop.stalls) == (longest_ns >= STALL_NS)
    assert loop.timer_lag.count == 200
    assert sum(s.durations.count for s in loop.functions) == loop.steps
    assert loop.busy_ns <= loop.run_ns
    assert loop.busy_ns / 1e9 + selector.waited_s <= ran_s * (1 + CLOCKS_AGREE)


def test_steps_are_counted_exactly_with_their_queries() -> None:
    """Every step of a task counts, and every driver call inside a step is listed as its cause."""
    connection = sqlite3.connect(":memory:")

    async def asking() -> None:
        for _ in range(5):
            connection.execute("SELECT 1").fetchone()
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(asking() for _ in range(7)))
        connection.execute("SELECT 2")

    profile = record(main)
    connection.close()
    steps = {s.function.function.rpartition(".")[2]: s for s in loop_of(profile).functions}
    assert steps["asking"].durations.count == 7 * 6
    (cause,) = steps["asking"].causes
    assert (cause.statement, cause.calls) == ("SELECT ?", 7 * 5 * 2)
    assert abs(cause.ns - steps["asking"].database_ns) <= 1, "rounded once, and call by call"
    assert sum(steps["asking"].durations.histogram.values()) == 42
    assert sum(c.calls for c in steps["main"].causes) == 1


def test_more_statements_in_a_step_than_are_told_apart() -> None:
    """The rest of the database time is in the total."""
    connection = sqlite3.connect(":memory:")

    async def main() -> None:
        for i in range(100):
            connection.execute(f"SELECT 1 AS a{i}")

    (step,) = [s for s in loop_of(record(main)).functions if s.function.function.endswith("main")]
    connection.close()
    assert 0 < len(step.causes) < 100
    assert sum(cause.ns for cause in step.causes) < step.database_ns < step.durations.total_ns


def test_a_stall_that_never_ends_is_in_the_trace(tmp_path: Path) -> None:
    """It is in the trace while it lasts."""
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, time, queryprof\n"
        "queryprof.install('x.qprof')\n"
        "async def main():\n    print('begins', flush=True)\n    time.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    start_s = time.monotonic()
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == "begins\n"
        grown_ns = [0]
        while len(grown_ns) < 4 and time.monotonic() < start_s + LONGEST_S:
            for stall in loop_of(read_profile(str(tmp_path / "x.qprof"))).stalls:
                assert stall.count == 1
                grown_ns += [stall.total_ns] * (stall.total_ns > grown_ns[-1])
        child.kill()
    (stall,) = loop_of(read_profile(str(tmp_path / "x.qprof"))).stalls
    assert stall.count == 1
    assert STALL_NS <= grown_ns[1] < grown_ns[2] < grown_ns[3] <= stall.total_ns
    assert stall.total_ns / 1e9 < time.monotonic() - start_s


def outcomes(recorded: bool) -> list[object]:
    """Return what a program observes: failing callbacks, contexts and the loop."""
    seen: list[object] = []
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    def failing(number: int) -> None:
        raise ValueError(number)

    def cancelling() -> None:
        handles[0].cancel()
        raise KeyError("cancelled itself")

    def entering() -> None:
        raise AssertionError("not reached")

    handles: list[asyncio.Handle] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def handler(_: object, context: dict[str, Any]) -> None:
            error = context["exception"]
            names, traceback = [], error.__traceback__
            while traceback:
                names.append(traceback.tb_frame.f_code.co_name)
                traceback = traceback.tb_next
            what = re.sub("0x[0-9a-f]+", "", repr(error))
            seen.append((context["message"].split(" at ")[0], what, error.__context__))
            seen.append((names, sorted(context), type(context["handle"]).__name__))
            seen.append(variable.get())

        loop.set_exception_handler(handler)
        variable.set(7)
        loop.call_soon(failing, 1)
        handles.append(loop.call_soon(cancelling))
        variable.set(8)
        loop.call_later(0.001, failing, 2)
        context = contextvars.copy_context()
        context.run(lambda: loop.call_soon(entering, context=context)._run())
        task = asyncio.create_task(asyncio.sleep(10), name="sleeper")
        await asyncio.sleep(0.01)
        task.cancel("enough")
        try:
            await task
        except asyncio.CancelledError as error:
            seen.append((error.args, task.get_name(), task.cancelled()))
        loop.call_soon(exit_now)
        await asyncio.sleep(1)

    def exit_now() -> None:
        raise SystemExit(3)

    try:
        if recorded:
            record(main)
        else:
            asyncio.run(main())
    except SystemExit as error:
        seen.append(("exit", error.code))
    return seen


def test_callbacks_fail_as_they_do_without_us() -> None:
    """Messages, tracebacks, contexts, handlers, cancellation and SystemExit are the same."""
    bare = outcomes(recorded=False)
    assert len(bare) > 10
    assert bare == outcomes(recorded=True)


def test_debug_mode_still_names_slow_callbacks(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0.02
        time.sleep(0.03)

    with caplog.at_level("WARNING", logger="asyncio"):
        record(main, debug=True)
    assert re.search(r"took \d\.\d+ seconds", caplog.text)
