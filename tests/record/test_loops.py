"""asyncio's loops: what blocked them is found, with its line, and the program does not notice."""

from __future__ import annotations

import asyncio
import contextvars
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from record.loop_programs import loop_of, record

from queryprof.analysis.report import Report
from queryprof.model import Profile, Stall
from queryprof.trace.reader import read_profile

SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
    " SELECT count(*) FROM n"
)


TOLERANCE_NS = 2_000_000


TOLERANCE = 0.05


def stalls_by_function(profile: Profile) -> dict[str, Stall]:
    return {stall.function.function.rpartition(".")[2]: stall for stall in loop_of(profile).stalls}


def line_of(marker: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {marker}"))


def test_what_blocks_the_loop_is_found_with_its_line() -> None:
    """A sleep, a slow query, a loop in Python, C code that holds the GIL: line, kind, duration."""
    took_ns: dict[str, int] = {}
    connection = sqlite3.connect(":memory:")

    def timed(name: str, block: Callable[[], object]) -> None:
        start = time.perf_counter_ns()
        block()
        took_ns[name] = time.perf_counter_ns() - start

    def spin() -> None:
        end = time.perf_counter() + 0.15
        while time.perf_counter() < end:
            pass

    async def sleeping() -> None:
        timed("sleeping", lambda: time.sleep(0.12))  # sleeping

    async def querying() -> None:
        timed("querying", lambda: connection.execute(SLOW).fetchall())  # querying

    async def computing() -> None:
        timed("computing", spin)

    async def holding() -> None:
        timed("holding", lambda: sum(range(40_000_000)))  # holding

    async def others() -> None:
        for _ in range(5):
            await asyncio.sleep(0.01)

    async def main() -> None:
        for function in (sleeping, querying, computing, holding):
            waiting = asyncio.create_task(others())
            await asyncio.sleep(0.005)
            await asyncio.create_task(function())
            await waiting

    expected_categories = {
        "sleeping": "waiting", "querying": "database", "computing": "computing",
        "holding": "C code that holds the GIL",
    }  # fmt: skip
    for _ in range(4):  # on a busy machine the watchdog may get the GIL when the step has ended
        profile = record(main)
        stalls = stalls_by_function(profile)
        assert set(took_ns) == set(stalls)
        categories = {
            f.stall.function.function.rpartition(".")[2]: f.category
            for f in Report(profile).loops[0].stalls
        }
        if categories == expected_categories and all(stall.path for stall in stalls.values()):
            break
    connection.close()
    assert categories == expected_categories
    for name, stall in stalls.items():
        assert stall.count == 1
        expected = took_ns[name]
        assert abs(stall.total_ns - expected) <= max(TOLERANCE * expected, TOLERANCE_NS), name
        assert stall.delayed >= 1, "the other task's timer was due meanwhile"
        assert stall.delay_ns <= stall.delayed * stall.total_ns
        marked = "spin" if name == "computing" else name
        seen = [frame for frame in stall.path if frame.function.endswith(("<lambda>", "spin"))]
        assert seen, stall.path
        assert marked == "spin" or seen[0].line == line_of(name)
    (cause,) = [c for c in stalls["querying"].causes if c.ns > 1_000_000]
    assert cause.statement.startswith("WITH RECURSIVE")
    assert cause.ns > 0.95 * stalls["querying"].total_ns


def test_a_healthy_program_has_no_stall() -> None:
    async def worker() -> None:
        for _ in range(20):
            await asyncio.sleep(0.005)

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(10)))

    loop = loop_of(record(main))
    assert loop.stalls == ()
    assert loop.timer_lag.count == 200
    assert sum(s.durations.count for s in loop.functions) == loop.steps
    assert loop.busy_ns <= loop.run_ns


def test_steps_are_counted_exactly_with_their_queries() -> None:
    """Every step of a task counts, and every call of the driver inside one is its cause."""
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
    """While it lasts."""
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, time, queryprof\n"
        "queryprof.install('x.qprof')\n"
        "async def main():\n    print('begins', flush=True)\n    time.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == "begins\n"
        time.sleep(1.5)
        running = loop_of(read_profile(str(tmp_path / "x.qprof")))
        child.kill()
    killed = loop_of(read_profile(str(tmp_path / "x.qprof")))
    for loop in (running, killed):
        (stall,) = loop.stalls
        assert stall.count == 1
        assert 1_200_000_000 < stall.total_ns < 2_400_000_000


def outcomes(recorded: bool) -> list[object]:
    """What a program sees of callbacks that fail, of its contexts, and of its loop."""
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
    """Messages, tracebacks, contexts, handlers, cancellation, SystemExit."""
    bare = outcomes(recorded=False)
    assert len(bare) > 10
    assert bare == outcomes(recorded=True)


def test_debug_mode_still_names_slow_callbacks(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0.02
        time.sleep(0.03)

    with caplog.at_level("WARNING", logger="asyncio"):
        record(main, debug=True)
    assert "took 0.0" in caplog.text
