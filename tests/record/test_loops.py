"""asyncio's loops: what blocked them is found, with its line, and the program does not notice."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

import queryprof
from queryprof.analysis.report import Report
from queryprof.hooks.event_loops.heartbeat import Heartbeat, beating
from queryprof.model import Loop, Profile, Stall
from queryprof.session import session
from queryprof.trace.reader import read_profile

SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
    " SELECT count(*) FROM n"
)
TOLERANCE_NS = 2_000_000
TOLERANCE = 0.05

Main = Callable[[], Coroutine[Any, Any, Any]]


def record(main: Main, **options: Any) -> Profile:
    with queryprof.profile() as recording:
        asyncio.run(main(), **options)
    return recording.profile


def loop_of(profile: Profile) -> Loop:
    (loop,) = profile.loops
    return loop


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
        if categories == expected_categories:
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


def test_recording_that_starts_inside_a_running_loop() -> None:
    """install() in an application's start-up code finds the loop that runs it."""

    async def slow() -> None:
        time.sleep(0.08)

    async def main() -> Profile:
        with queryprof.profile() as recording:
            await asyncio.create_task(slow())
            await asyncio.sleep(0.25)
        return recording.profile

    for _ in range(2):
        loop = loop_of(asyncio.run(main()))
        assert "slow" in [s.function.function.rpartition(".")[2] for s in loop.stalls]
        assert loop.beat_lag.count >= 2
        assert 300_000_000 < loop.run_ns < 500_000_000


def test_recording_that_ends_inside_a_running_loop() -> None:
    async def main() -> int:
        recording = queryprof.profile()
        with recording:
            await asyncio.sleep(0)
        await asyncio.sleep(0.15)
        return len(recording.profile.loops)

    assert asyncio.run(main()) == 1


def test_everything_is_put_back() -> None:
    """By identity, also after a recording in which loops ran."""
    from asyncio import base_events, events

    before = (events.Handle.__dict__["_run"], base_events.BaseEventLoop.__dict__["run_forever"])
    callbacks = list(gc.callbacks)

    async def main() -> None:
        assert events.Handle.__dict__["_run"] is not before[0]

    record(main)
    assert before == (
        events.Handle.__dict__["_run"], base_events.BaseEventLoop.__dict__["run_forever"],
    )  # fmt: skip
    assert callbacks == gc.callbacks


@pytest.mark.slow
def test_ten_thousand_loops_leave_nothing_behind() -> None:
    async def main() -> None:
        await asyncio.sleep(0)

    def run(times: int) -> None:
        for _ in range(times):
            asyncio.run(main())

    with queryprof.profile() as recording:
        run(500)
        gc.collect()
        before = psutil.Process().memory_info().rss
        run(9_500)
        gc.collect()
        grown = psutil.Process().memory_info().rss - before
    loop = loop_of(recording.profile)
    # asyncio.run runs a loop three times: the program, asynchronous generators, the executor
    assert loop.runs == 3 * 10_000
    if "ASAN_OPTIONS" not in os.environ:  # which keeps what is freed, for a while
        assert grown < 4 * 1024 * 1024


def test_loops_in_threads_at_once() -> None:
    """Each thread's loop has its own lag and stalls."""

    async def main(block_s: float) -> None:
        await asyncio.sleep(0.02)
        time.sleep(block_s)
        await asyncio.sleep(0.02)

    with queryprof.profile() as recording:
        threads = [
            threading.Thread(target=lambda s=s: asyncio.run(main(s)), name=f"loop-{s}")
            for s in (0.0, 0.1, 0.2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = {
        loop.thread.name: sum(s.count for s in loop.stalls) for loop in recording.profile.loops
    }
    assert found == {"loop-0.0": 0, "loop-0.1": 1, "loop-0.2": 1}


def test_how_late_the_loop_is_while_it_runs() -> None:
    """queryprof.loop_lag() for a health endpoint."""
    assert queryprof.loop_lag() == []

    async def main() -> list[Any]:
        await asyncio.sleep(0.25)
        time.sleep(0.3)
        await asyncio.sleep(0.01)
        return queryprof.loop_lag()

    with queryprof.profile():
        (lag,) = asyncio.run(main())
    assert lag["kind"] == "asyncio"
    assert lag["beats"] >= 4
    assert 0.15 < lag["max_s"] < 0.4


def test_the_first_step_stands_still() -> None:
    """Most loops end before their first beat; one that stands still then has missed beats."""

    async def main() -> None:
        time.sleep(0.35)
        await asyncio.sleep(0)

    async def soon() -> None:
        await asyncio.sleep(0)

    with queryprof.profile() as recording:
        asyncio.run(soon())
    assert recording.profile.loops[0].beat_lag.count == 0
    with queryprof.profile() as recording:
        asyncio.run(main())
    (found,) = recording.profile.loops
    assert found.beat_lag.count == 3
    assert 0.2e9 < found.beat_lag.max_ns < 0.34e9


def test_an_interrupt_where_a_heartbeat_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the program's; an error of ours is not, and the program goes on."""

    async def main() -> str:
        time.sleep(0.15)
        await asyncio.sleep(0)
        return "ran on"

    def fails(error: BaseException) -> str | BaseException:
        def start(*_: object) -> None:
            raise error

        with monkeypatch.context() as patch, queryprof.profile():
            patch.setattr(Heartbeat, "start_from", start)
            try:
                return asyncio.run(main())
            except BaseException as raised:
                return raised

    assert fails(ValueError("ours")) == "ran on"
    assert isinstance(fails(KeyboardInterrupt()), KeyboardInterrupt)


def test_an_hour_of_idleness_is_told_at_once() -> None:
    """Beats that nobody waited for are not told one by one."""

    async def main() -> float:
        time.sleep(0.15)
        await asyncio.sleep(0.2)
        (beats,) = beating
        now_s = time.monotonic()
        before_s = time.perf_counter()
        beats.tell(now_s - 3600, now_s, now_s)
        return time.perf_counter() - before_s

    with queryprof.profile() as recording:
        took_s = asyncio.run(main())
    assert recording.profile.loops[0].beat_lag.count > 36_000
    assert took_s < 0.01


def test_recordings_that_begin_in_running_loops_let_them_go() -> None:
    """Each loop runs into the next recording, and none is kept."""

    async def main() -> None:
        queryprof.uninstall()
        queryprof.install("/dev/null")
        await asyncio.sleep(0)

    class Loop(asyncio.SelectorEventLoop):
        """One that can be referred to."""

    loops = []
    session.start()
    for _ in range(270):
        loop = Loop()
        loop.run_until_complete(main())
        loop.close()
        loops.append(weakref.ref(loop))
        del loop
    session.stop()
    gc.collect()
    assert not [one for one in loops if one() is not None]


def test_an_idle_time_before_the_first_step() -> None:
    """Beats that were due then were not late."""
    with queryprof.profile() as recording, asyncio.Runner() as runner:
        loop = runner.get_loop()
        loop.call_later(0.25, loop.call_later, 0.2, loop.stop)
        loop.run_forever()
    (found,) = recording.profile.loops
    assert found.beat_lag.count >= 2
    assert found.beat_lag.max_ns < 0.1e9


def test_a_loop_that_keeps_the_collector_busy_says_so() -> None:
    """Garbage collection stands apart from the step's own time."""

    async def main() -> None:
        junk = [[i] for i in range(300_000)]
        for _ in range(8):
            gc.collect()
        del junk

    (finding,) = Report(record(main)).loops
    (stall,) = finding.stalls
    assert stall.category == "garbage collection"


def test_a_loop_with_a_clock_of_its_own() -> None:
    """How late it is cannot be told, and nothing beats in its time."""

    class Fast(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return super().time() * 100

    async def main() -> None:
        for _ in range(10):
            await asyncio.sleep(0.5)

    with queryprof.profile() as recording:
        loop = Fast()
        loop.run_until_complete(main())
        assert not loop._scheduled  # type: ignore[attr-defined]
        loop.close()
    (found,) = recording.profile.loops
    assert (found.timer_lag.count, found.beat_lag.count) == (0, 0)
    assert found.steps > 10


def test_loops_of_many_threads() -> None:
    """80 threads of different names: later ones are told apart without their numbers."""
    with queryprof.profile() as recording:
        for number in range(80):
            thread = threading.Thread(
                target=asyncio.run, args=(asyncio.sleep(0),), name=f"loop-{number}"
            )
            thread.start()
            thread.join()
    loops = recording.profile.loops
    per_thread = 3  # what asyncio.run runs: the coroutine, and two that clean up
    runs = {loop.thread.name: loop.runs for loop in loops}
    named = 64 - len(["MainThread"])
    assert runs == {
        **{f"loop-{number}": per_thread for number in range(named)},
        "loop-*": (80 - named) * per_thread,
    }
