"""Blocks (`profile`, and those of limits) count exactly what the process executed while they were
open.

This holds for any number of threads, for nested and overlapping blocks, recorded or not. A block
costs the same, whatever happened before it.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import queryprof
from conftest import EXAMPLES
from queryprof.collect.reader import read_profile
from queryprof.recorder.recording import Recording
from queryprof.recorder.session import session
from queryprof.testing.meter import Block, meter

QUERY = "SELECT 7 AS seven"
THREADS = 4


def executions(recording: Recording) -> int:
    counts = recording.profile.aggregates
    return sum(one.count for one in counts if one.operation == "execute")


class Worker(threading.Thread):
    """Runs the functions that it gets, in its own thread."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._work: queue.SimpleQueue[tuple[Callable[[], object], Future] | None]
        self._work = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        while (given := self._work.get()) is not None:
            work, future = given
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
        self.connection.close()

    def do(self, work: Callable[[], object]) -> object:
        future: Future = Future()
        self._work.put((work, future))
        return future.result()

    def execute(self, times: int) -> None:
        def work() -> None:
            for _ in range(times):
                self.connection.execute(QUERY).fetchall()

        self.do(work)

    def end(self) -> None:
        self._work.put(None)
        self.join()


class Blocks(RuleBasedStateMachine):
    """Random blocks in random threads, and a count of the executions."""

    def __init__(self) -> None:
        super().__init__()
        self.executed = 0
        self.workers = [Worker() for _ in range(THREADS)]
        self.open: list[tuple[Recording | Block, int]] = []
        self.recorded_from: int | None = None

    @initialize(is_recorded=st.booleans())
    def begin(self, is_recorded: bool) -> None:
        if is_recorded:
            queryprof.install("blocks.qprof")
            self.recorded_from = self.executed

    @rule(thread=st.integers(0, THREADS - 1), times=st.integers(1, 3))
    def execute(self, thread: int, times: int) -> None:
        self.workers[thread].execute(times)
        self.executed += times

    @rule(thread=st.integers(0, THREADS - 1), of_limits=st.booleans())
    def open_block(self, thread: int, of_limits: bool) -> None:
        if len(self.open) < 8:
            begin = meter.open if of_limits else queryprof.profile().__enter__
            block = self.workers[thread].do(begin)
            self.open.append((block, self.executed))  # type: ignore[arg-type]

    @rule(which=st.integers(0, 7), thread=st.integers(0, THREADS - 1))
    def close_block(self, which: int, thread: int) -> None:
        if self.open:
            block, before = self.open.pop(which % len(self.open))
            self.workers[thread].do(lambda: self.check(block, self.executed - before))

    def check(self, block: Recording | Block, expected: int) -> None:
        if isinstance(block, Recording):
            block.__exit__(None, None, None)
            assert executions(block) == expected
            assert not block.profile.left_out
            return
        meter.border()
        found = sum(part.executions for part in block.parts)
        meter.close(block)
        assert found == expected
        assert block.is_whole

    @invariant()
    def recording_is_on_while_somebody_wants_it(self) -> None:
        assert session.is_on == (bool(self.open) or self.recorded_from is not None)

    def teardown(self) -> None:
        for block, before in self.open:
            self.check(block, self.executed - before)
        queryprof.uninstall()
        if self.recorded_from is not None and self.executed > self.recorded_from:
            whole = read_profile("blocks.qprof").aggregates
            recorded = sum(one.count for one in whole if one.operation == "execute")
            assert recorded == self.executed - self.recorded_from
            Path("blocks.qprof").unlink()
        for worker in self.workers:
            worker.end()


TestBlocks = Blocks.TestCase
TestBlocks.settings = settings(max_examples=max(10, EXAMPLES // 2), stateful_step_count=30)


@pytest.mark.parametrize(
    ("threads", "is_recorded"),
    [
        *((1, False), (1, True), (2, True), (8, False)),
        pytest.param(16, False, marks=pytest.mark.slow),
        pytest.param(16, True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.repeats
def test_blocks_of_several_threads_at_once_miss_nothing(threads: int, is_recorded: bool) -> None:
    """Each block has at least the executions of its own thread. With one thread, it has exactly
    these.
    """
    found: list[int] = []
    unsure: list[object] = []

    def work() -> None:
        connection = sqlite3.connect(":memory:")
        for _ in range(3):
            with queryprof.profile() as recording:
                connection.execute(QUERY).fetchall()
            found.append(executions(recording))
            unsure.extend(recording.profile.left_out)
        connection.close()

    if is_recorded:
        queryprof.install("x.qprof")
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    queryprof.uninstall()
    assert len(found) == 3 * threads
    assert min(found) >= 1
    assert threads > 1 or max(found) == 1
    assert not unsure


def test_a_block_begun_where_another_one_ends_the_recording_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first block of the recording ends. Before the recording stops, another thread opens a
    block.
    """
    begun, joined = threading.Event(), threading.Event()
    results: list[Recording] = []

    def join() -> None:
        connection = sqlite3.connect(":memory:")
        begun.wait()
        with queryprof.profile() as recording:
            joined.set()
            connection.execute(QUERY).fetchall()
        results.append(recording)
        connection.close()

    thread = threading.Thread(target=join)
    thread.start()
    stop = session.exclusive._later

    def late() -> None:
        begun.set()
        joined.wait(0.2)  # it cannot begin here: this thread is still inside
        stop()

    monkeypatch.setattr(session.exclusive, "_later", late)
    with queryprof.profile():
        pass
    thread.join()
    (recording,) = results
    assert executions(recording) == 1
    assert not recording.profile.left_out


def calls_of_a_block() -> int:
    """Return how many functions a block with one query calls."""
    connection = sqlite3.connect(":memory:")
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    block = queryprof.profile()
    threading.setprofile(None)
    sys.setprofile(count)
    try:
        block.__enter__()
        connection.execute(QUERY).fetchall()
        block.__exit__(None, None, None)
    finally:
        sys.setprofile(None)
    connection.close()
    return calls


@pytest.mark.once
@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.repeats
def test_a_block_costs_the_same_after_many_blocks(is_recorded: bool) -> None:
    if is_recorded:
        queryprof.install("x.qprof")
    around = queryprof.profile()
    if not is_recorded:
        around.__enter__()
    costs = [calls_of_a_block() for _ in range(30)]
    if not is_recorded:
        around.__exit__(None, None, None)
    queryprof.uninstall()
    assert max(costs[20:]) <= 1.1 * max(costs[2:6])


def test_blocks_of_tasks_overlap() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    found: dict[int, int] = {}

    async def task(number: int, first: asyncio.Event, second: asyncio.Event) -> None:
        with queryprof.profile() as recording:
            first.set()
            connection.execute(QUERY).fetchall()
            await second.wait()
            connection.execute(QUERY).fetchall()
        found[number] = executions(recording)

    async def main() -> None:
        one, two = asyncio.Event(), asyncio.Event()
        await asyncio.gather(task(1, one, two), task(2, two, one))

    asyncio.run(main())
    connection.close()
    # The second one ends while the first one waits.
    assert found == {1: 4, 2: 2}


@pytest.mark.parametrize("window", [None, "5m"])
def test_blocks_around_install_have_what_was_before_it(window: str | None) -> None:
    """The recording continues into a trace whose parts are in another directory."""
    connection = sqlite3.connect(":memory:")
    outer, inner = queryprof.profile(), queryprof.profile()
    outer.__enter__()
    connection.execute(QUERY).fetchall()
    inner.__enter__()
    connection.execute(QUERY).fetchall()
    queryprof.install("x.qprof", window=window)
    connection.execute(QUERY).fetchall()
    inner.__exit__(None, None, None)
    connection.execute(QUERY).fetchall()
    outer.__exit__(None, None, None)
    connection.execute(QUERY).fetchall()
    queryprof.uninstall()
    connection.close()
    assert (executions(outer), executions(inner)) == (4, 2)
    assert not outer.profile.left_out
    if window is None:
        whole = read_profile("x.qprof").aggregates
        assert sum(one.count for one in whole if one.operation == "execute") == 5


def test_no_part_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for again in range(2):
        with queryprof.profile(), queryprof.profile():
            queryprof.install(f"x{again}.qprof")
            with queryprof.profile():
                pass
        queryprof.uninstall()
    assert not list(tmp_path.glob("*.live"))


def test_a_block_during_another_ones_end_raises_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a block may begin in a signal handler or a finalizer. The block that ends loses
    nothing.
    """
    connection = sqlite3.connect(":memory:")
    inner = queryprof.profile()
    load = Recording._load

    def interrupted(self: Recording) -> None:
        if self is outer:
            with inner:
                connection.execute(QUERY).fetchall()
        load(self)

    monkeypatch.setattr(Recording, "_load", interrupted)
    with queryprof.profile() as outer:
        connection.execute(QUERY).fetchall()
    connection.close()
    assert executions(outer) == 2
    assert executions(inner) == 0
    assert "signal handler or a finalizer" in inner.profile.left_out[0]
    assert not session.is_on


def test_a_block_in_a_forked_child_has_the_childs_executions() -> None:
    with queryprof.profile() as outer:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                with queryprof.profile() as recording:
                    sqlite3.connect(":memory:").execute(QUERY).fetchall()
                status = 0 if executions(recording) == 1 else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert executions(outer) == 0
