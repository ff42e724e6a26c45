"""Recordings that begin and end while loops run, loops of many threads, and the lag of a loop."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import weakref
from typing import Any

import psutil
import pytest
from core.loop_programs import Selector, loop_of, record

import queryprof
from conftest import look
from queryprof.analysis.report import Report
from queryprof.core import _core
from queryprof.hooks.event_loops import heartbeat
from queryprof.hooks.event_loops.heartbeat import Heartbeat, beating
from queryprof.hooks.settings import hook_settings
from queryprof.model import Profile
from queryprof.recorder.session import session


def test_recording_that_starts_inside_a_running_loop() -> None:
    """install() in an application's start-up code finds the running loop."""

    async def slow() -> None:
        time.sleep(0.08)

    async def main() -> Profile:
        with queryprof.profile() as recording:
            await asyncio.create_task(slow())
            await asyncio.sleep(0.25)
        return recording.profile

    for _ in range(2):
        start_ns = time.perf_counter_ns()
        loop = loop_of(asyncio.run(main()))
        ran_ns = time.perf_counter_ns() - start_ns
        assert "slow" in [s.function.function.rpartition(".")[2] for s in loop.stalls]
        assert loop.beat_lag.count >= 2
        assert 300_000_000 < loop.run_ns < ran_ns


def test_recording_that_ends_inside_a_running_loop() -> None:
    async def main() -> int:
        recording = queryprof.profile()
        with recording:
            await asyncio.sleep(0)
        await asyncio.sleep(0.15)
        return len(recording.profile.loops)

    assert asyncio.run(main()) == 1


def test_everything_is_put_back() -> None:
    """The original objects are restored, even after a recording in which loops ran."""
    from asyncio import base_events, events

    places = ((events.Handle, "_run"), (base_events.BaseEventLoop, "run_forever"))
    before = [look(vars(owner)[name]) for owner, name in places]
    callbacks = list(gc.callbacks)

    async def main() -> None:
        assert look(events.Handle.__dict__["_run"]) != before[0]

    record(main)
    assert before == [look(vars(owner)[name]) for owner, name in places]
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
    if "ASAN_OPTIONS" not in os.environ:  # it keeps freed memory for a while
        assert grown < 4 * 1024 * 1024


def test_loops_in_threads_at_once() -> None:
    """Each thread's loop has its own lag and stalls, which are no longer than its own steps."""
    steps_ns: dict[str, int] = {}

    async def main(block_s: float) -> None:
        await asyncio.sleep(0.02)
        time.sleep(block_s)
        await asyncio.sleep(0.02)

    def run(block_s: float) -> None:
        start_ns, selector = time.perf_counter_ns(), Selector()
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
            runner.run(main(block_s))
        took_ns = time.perf_counter_ns() - start_ns - int(1e9 * selector.waited_s)
        steps_ns[threading.current_thread().name] = took_ns

    with queryprof.profile() as recording:
        threads = [
            threading.Thread(target=run, args=(s,), name=f"loop-{s}") for s in (0.0, 0.1, 0.2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = {
        loop.thread.name: sum(s.total_ns for s in loop.stalls) for loop in recording.profile.loops
    }
    assert set(found) == set(steps_ns)
    assert all(found[name] <= steps_ns[name] * 1.002 for name in found)
    assert found["loop-0.1"] >= 1e8
    assert found["loop-0.2"] >= 2e8


def test_how_late_the_loop_is_while_it_runs() -> None:
    """queryprof.loop_lag() is for a health endpoint."""
    assert queryprof.loop_lag() == []

    async def main() -> list[Any]:
        await asyncio.sleep(0.25)
        time.sleep(0.3)
        await asyncio.sleep(0.01)
        return queryprof.loop_lag()

    start_s = time.monotonic()
    with queryprof.profile():
        (lag,) = asyncio.run(main())
    assert lag["kind"] == "asyncio"
    assert lag["beats"] >= 4
    # An idle loop skips every second beat: the longest time to the next beat is 0.2 s.
    assert 0.1 <= lag["max_s"] < time.monotonic() - start_s


def test_the_first_step_stands_still() -> None:
    """Most loops end before their first beat. A loop that is blocked then has missed beats."""

    async def main() -> None:
        time.sleep(0.35)
        await asyncio.sleep(0)

    async def soon() -> None:
        await asyncio.sleep(0)

    for function, least in ((soon, 0), (main, 3)):
        start_s = time.monotonic()
        with queryprof.profile() as recording:
            asyncio.run(function())
        ran_s = time.monotonic() - start_s
        (found,) = recording.profile.loops
        assert least <= found.beat_lag.count <= ran_s / hook_settings.heartbeat_s
        assert found.beat_lag.max_ns <= 1e9 * max(0.0, ran_s - hook_settings.heartbeat_s)
    assert found.beat_lag.max_ns >= 0.25e9


def test_an_interrupt_where_a_heartbeat_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt reaches the program. An error in queryprof's code does not, and the program
    continues.
    """

    async def main() -> str:
        time.sleep(0.15)
        await asyncio.sleep(0)
        return "ran on"

    def fails(error: BaseException) -> str | BaseException:
        def start(*_: object) -> None:
            raise error

        with monkeypatch.context() as patch, queryprof.profile():
            patch.setattr(Heartbeat, "record_and_schedule", start)
            try:
                return asyncio.run(main())
            except BaseException as raised:
                return raised

    assert fails(ValueError("ours")) == "ran on"
    assert isinstance(fails(KeyboardInterrupt()), KeyboardInterrupt)


def test_an_hour_of_idleness_is_recorded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skipped beats are not recorded one by one."""
    recorded: list[int] = []

    class Counted:
        def add_heartbeat_lag(self, lag_s: float, times: int = 1) -> int:
            recorded.append(times)
            return _core.add_heartbeat_lag(lag_s, times)

    async def main() -> None:
        time.sleep(0.15)
        await asyncio.sleep(0.2)
        (beats,) = beating
        now_s = time.monotonic()
        with monkeypatch.context() as patch:
            patch.setattr(heartbeat, "_core", Counted())
            beats.record(now_s - 3600, now_s, now_s)

    with queryprof.profile() as recording:
        asyncio.run(main())
    assert recording.profile.loops[0].beat_lag.count > 36_000
    assert sum(recorded) >= 36_000
    assert len(recorded) <= 2


@pytest.mark.slow
def test_recordings_that_begin_in_running_loops_let_them_go() -> None:
    """Each loop runs into the next recording, and none is kept alive."""

    async def main() -> None:
        queryprof.uninstall()
        queryprof.install("/dev/null")
        await asyncio.sleep(0)

    class Loop(asyncio.SelectorEventLoop):
        """A loop that supports weak references."""

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
    """Beats that were due then were not late. Later beats are no later than the loop was."""
    selector, start_s = Selector(), time.perf_counter()
    factory = lambda: asyncio.SelectorEventLoop(selector)  # noqa: E731
    with queryprof.profile() as recording, asyncio.Runner(loop_factory=factory) as runner:
        loop = runner.get_loop()
        loop.call_later(0.25, loop.call_later, 0.2, loop.stop)
        loop.run_forever()
    late_s = time.perf_counter() - start_s - selector.wanted_s
    (found,) = recording.profile.loops
    assert found.beat_lag.count >= 2
    assert found.beat_lag.max_ns <= late_s * 1e9


def test_garbage_collection_of_a_loop_is_reported() -> None:
    """Garbage collection is separate from the step's own time. The step does nothing else: on a
    busy machine, any other work may take most of its time.
    """
    junk = [[i] for i in range(300_000)]

    async def main() -> None:
        end_s = time.monotonic() + 0.2
        while time.monotonic() < end_s:
            gc.collect()

    (finding,) = Report(record(main)).loops
    del junk
    (stall,) = (one for one in finding.stalls if one.stall.function.function.endswith("main"))
    assert stall.category == "garbage collection"


@pytest.mark.slow
def test_a_loop_with_a_clock_of_its_own() -> None:
    """Its lag is unknown, and it has no heartbeat."""

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
    """There are 80 threads with different names. Later ones are kept apart by their names without
    numbers.
    """
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
