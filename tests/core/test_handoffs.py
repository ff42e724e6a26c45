"""Work handed to other threads belongs to the submitter's call path and span. Also: labels noted by
a library, and the resource usage of threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

import pytest
from core.work_programs import LONGEST_S, ask, span_of

import queryprof
from conftest import only, traces_in
from queryprof.model import Aggregate, Handoff, Profile

HERE = Path(__file__).name

CLOCKS_AGREE = 0.002
"""The core's clock and Python's differ by less than this share."""


def functions(aggregate: Aggregate) -> list[str]:
    """Return the functions of a call path. The code that runs the tests may be a string
    (pytest-xdist).
    """
    path = [frame for frame in aggregate.path if frame.file != "<string>"]
    assert {Path(frame.file).name for frame in path} <= {HERE, "work_programs.py"}
    return [frame.function.rpartition(".")[2] for frame in path]


def handoff(profile: Profile, function: str) -> Handoff:
    (found,) = [h for h in profile.handoffs if h.path[0].function.endswith(function)]
    return found


def test_thread_pools() -> None:
    """The path has the worker's own frames, then those of the submitter. The span is the
    submitter's.
    """

    def submits() -> None:
        with concurrent.futures.ThreadPoolExecutor(2) as pool, queryprof.span("work"):
            submitted = []
            for number in range(10):
                submitted.append(pool.submit(ask, number))  # noqa: PERF401 a frame of its own
            assert [f.result() for f in submitted] == list(range(10))
            assert list(pool.map(ask, range(5))) == list(range(5))

    async def awaits() -> None:
        assert await asyncio.to_thread(ask, 3) == 3
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, ask, 4) == 4

    with queryprof.profile() as recording:
        submits()
        with queryprof.span("awaiting"):
            asyncio.run(awaits())
    found = [a for a in recording.profile.aggregates if a.operation == "execute"]
    places: Counter[tuple[str, ...]] = Counter()
    for aggregate in found:
        places[*functions(aggregate)[:2], aggregate.span] += aggregate.count
    assert places == {("ask", "submits", "work"): 15, ("ask", "awaits", "awaiting"): 2}
    assert all(a.thread.name.startswith(("ThreadPoolExecutor", "asyncio_")) for a in found)
    assert span_of(recording.profile, "work").queries.max_ns == 15
    assert sum(h.count for h in recording.profile.handoffs) == 17
    assert {h.kind for h in recording.profile.handoffs} == {"thread pool"}
    assert not sum(h.errors + h.cancelled + h.handback.count for h in recording.profile.handoffs)


def test_two_places_that_submit_the_same_work_in_turn() -> None:
    """The worker's frames are the same each time, but the submitter differs."""
    with queryprof.profile() as recording:

        def here() -> None:
            assert pool.submit(ask, 1).result() == 1

        def there() -> None:
            assert pool.submit(ask, 2).result() == 2

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            for number in range(60):
                (here if number % 3 else there)()
    places: Counter[str] = Counter()
    for aggregate in recording.profile.aggregates:
        if aggregate.operation == "execute":
            places[functions(aggregate)[1].rpartition(".")[2]] += aggregate.count
    assert places == {"here": 40, "there": 20}


def test_a_pool_with_too_few_threads() -> None:
    """The wait for a thread is separate from the work. Errors and work that never ran are
    counted.
    """
    begun, release = threading.Event(), threading.Event()
    waited_ns: list[int] = []

    def slow() -> None:
        ask()
        begun.set()
        release.wait(LONGEST_S)

    def fails() -> None:
        ask()
        raise LookupError

    def submits(pool: concurrent.futures.Executor) -> None:
        first = pool.submit(slow)
        begun.wait(LONGEST_S)
        queued = []
        for _ in range(5):
            queued.append(pool.submit(ask))  # noqa: PERF401 a frame of its own
        never = pool.submit(ask)
        assert never.cancel()
        failing = pool.submit(fails)
        start_ns = time.perf_counter_ns()
        time.sleep(0.05)
        waited_ns.append(time.perf_counter_ns() - start_ns)
        release.set()
        first.result()
        assert [f.result() for f in queued] == [1] * 5
        assert isinstance(failing.exception(), LookupError)

    start_ns = time.perf_counter_ns()
    with queryprof.profile() as recording, concurrent.futures.ThreadPoolExecutor(1) as pool:
        submits(pool)
    lasted_ns = time.perf_counter_ns() - start_ns
    handoffs = [h for h in recording.profile.handoffs if h.path[0].function.endswith("submits")]
    assert sum(h.count for h in handoffs) == 7  # work that never ran called no driver
    assert sum(h.errors for h in handoffs) == 1
    first, *queued = sorted(handoffs, key=lambda h: h.path[0].line)
    assert first.queue.count == 1
    assert sum(h.queue.count for h in queued) == 6
    least_ns = waited_ns[0] * (1 - CLOCKS_AGREE)
    assert all(h.queue.max_ns >= least_ns for h in queued)
    assert first.run.total_ns >= least_ns
    assert sum(h.run.total_ns for h in handoffs) <= lasted_ns * (1 + CLOCKS_AGREE)


def test_what_programs_see_of_a_pool() -> None:
    """Results, errors, names and types are the same with and without recording."""

    def named() -> str:
        """Return its name."""
        return threading.current_thread().name

    def behaviour() -> list[object]:
        seen: list[object] = []
        with concurrent.futures.ThreadPoolExecutor(1, "pool") as pool:
            seen.append(pool.submit(named).result())
            seen.append(pool.submit(lambda *a, **k: (a, k), 1, 2, x=3).result())
            for wrong in (5, "text", None):
                seen.append(repr(pool.submit(wrong).exception()))  # type: ignore[arg-type]  # noqa: PERF401
            for call in (pool.submit, lambda: pool.submit(fn=named)):  # type: ignore[call-arg]
                try:
                    call()  # type: ignore[operator]
                except TypeError as error:
                    seen.append(str(error))
            error = pool.submit(int, "x").exception()
            traceback = error.__traceback__ if error else None
            seen += [frame.f_code.co_qualname for frame, _ in walk_tb(traceback)]
        with pytest.raises(RuntimeError) as after_shutdown:
            pool.submit(named)
        return [*seen, str(after_shutdown.value)]

    submit = concurrent.futures.ThreadPoolExecutor.__dict__["submit"]
    bare = behaviour()
    with queryprof.profile():
        assert behaviour() == bare
        assert concurrent.futures.ThreadPoolExecutor.submit.__name__ == "submit"
    assert concurrent.futures.ThreadPoolExecutor.__dict__["submit"] is submit


def test_aiosqlite() -> None:
    """One connection serves many tasks. The path has the line of the await, and the time has four
    parts.
    """
    aiosqlite = pytest.importorskip("aiosqlite")

    async def load(database: object, number: int) -> int:
        async with database.execute("SELECT ?", (number,)) as cursor:  # type: ignore[attr-defined]
            row = await cursor.fetchone()
            return int(row[0])

    async def fails(database: object) -> None:
        with pytest.raises(sqlite3.OperationalError):
            await database.execute("SELECT * FROM missing")  # type: ignore[attr-defined]

    begun, release = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        release.wait(LONGEST_S)

    async def is_cancelled(database: object) -> None:
        await database.execute_fetchall("SELECT hold()")  # type: ignore[attr-defined]

    async def main() -> list[int]:
        async with aiosqlite.connect(":memory:") as database:
            with queryprof.span("gathered"):
                found = await asyncio.gather(*(load(database, n) for n in range(50)))
            await fails(database)
            await database.create_function("hold", 0, hold)
            task = asyncio.create_task(is_cancelled(database))
            assert await asyncio.to_thread(begun.wait, LONGEST_S)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            release.set()
            return list(found)

    before = {name: vars(aiosqlite.Connection)[name] for name in ("_execute", "__init__")}
    with queryprof.profile() as recording:
        assert asyncio.run(main()) == list(range(50))
    assert {name: vars(aiosqlite.Connection)[name] for name in before} == before
    profile = recording.profile
    select = only(profile, "SELECT ?")
    assert (select.count, functions(select)[0], select.span) == (50, "load", "gathered")
    assert functions(only(profile, "(connect)", "connect"))[0] == "main"
    assert functions(only(profile, "SELECT * FROM missing"))[0] == "fails"
    assert span_of(profile, "gathered").queries.max_ns == 50
    loads = [h for h in profile.handoffs if h.path[0].function.endswith("load")]
    assert sum(h.count for h in loads) == 150  # execute, fetchone, close
    for h in loads:
        assert (h.kind, h.span, h.errors, h.cancelled) == ("aiosqlite", "gathered", 0, 0)
        assert h.queue.count == h.run.count == h.handback.count == h.total.count == h.count
        parts_ns = h.queue.total_ns + h.run.total_ns + h.handback.total_ns
        assert abs(h.total.total_ns - parts_ns) <= 2 * h.count
    first = max(loads, key=lambda h: h.queue.total_ns)
    assert first.queue.total_ns > first.run.total_ns  # 50 tasks for one connection
    assert (handoff(profile, "fails").errors, handoff(profile, "fails").cancelled) == (1, 0)
    cancelled = handoff(profile, "is_cancelled")
    assert (cancelled.count, cancelled.errors, cancelled.cancelled) == (1, 0, 1)
    assert cancelled.run.max_ns >= 50_000_000 * (1 - CLOCKS_AGREE)
    assert cancelled.handback.count == 0


def test_twisted(script: Callable[[str], Path]) -> None:
    """With deferToThread and adbapi, the path has the line that deferred."""
    pytest.importorskip("twisted")
    script("""
import sqlite3, queryprof
from twisted.enterprise import adbapi
from twisted.internet import defer, reactor, threads

def ask():
    return sqlite3.connect(":memory:").execute("SELECT 1").fetchone()

def defers():
    return threads.deferToThread(ask)

def interaction(transaction):
    transaction.execute("SELECT 2")
    return transaction.fetchall()

@defer.inlineCallbacks
def main():
    with queryprof.span("deferred"):
        yield defers()
    pool = adbapi.ConnectionPool("sqlite3", ":memory:", check_same_thread=False)
    found = yield pool.runInteraction(interaction)
    found = yield pool.runQuery("SELECT 3 AS three")
    print(found)
    pool.close()
    reactor.stop()

queryprof.install("twisted.qprof")
reactor.callWhenRunning(main)
reactor.run()
""")
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("[(3,)]\n", "")
    (profile,) = traces_in(Path())
    executions = [a for a in profile.aggregates if a.operation == "execute"]
    found = {a.statement: [frame.function for frame in a.path] for a in executions}
    assert found["SELECT ?"][0] in ("ask", "interaction")
    paths = {tuple(f.function for f in a.path)[:2]: a.span for a in executions}
    assert paths["ask", "defers"] == "deferred"
    assert ("interaction", "main") in paths
    assert found["SELECT ? AS three"][0] == "main"
    assert {h.kind for h in profile.handoffs} == {"twisted"}


def test_greenlets() -> None:
    """The driver runs in a greenlet whose stack has no frame of the program."""
    greenlet = pytest.importorskip("greenlet")
    connection = sqlite3.connect(":memory:")
    execute = connection.execute

    def alpha() -> None:
        greenlet.greenlet(execute).switch("SELECT 1 AS alpha")

    def beta() -> None:
        greenlet.greenlet(execute).switch("SELECT 1 AS beta")

    def nested() -> None:
        greenlet.greenlet(lambda: greenlet.greenlet(execute).switch("SELECT 1 AS nested")).switch()

    with queryprof.profile() as recording:
        for _ in range(3):
            alpha()
            beta()
            nested()
    for name in ("alpha", "beta"):
        found = only(recording.profile, f"SELECT ? AS {name}")
        assert (found.count, functions(found)[0]) == (3, name)
    assert functions(only(recording.profile, "SELECT ? AS nested"))[:2] == ["<lambda>", "nested"]
    connection.close()


def test_greenlets_that_switch_inside_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that wait in many greenlets and end in any order count once each."""
    greenlet = pytest.importorskip("greenlet")
    main = greenlet.getcurrent()

    class Cursor:
        def execute(self, query: str) -> object:
            main.switch()
            return self

    class Connection:
        def execute(self, query: str) -> object:
            return Cursor().execute(query)

    module = ModuleType("switching_driver")
    vars(module).update(Cursor=Cursor, Connection=Connection)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    queryprof.instrument(module.__name__)

    def work() -> None:
        for _ in range(2):
            Connection().execute("SELECT 1 AS switching")

    with queryprof.profile() as recording:
        waiting = [greenlet.greenlet(work) for _ in range(50)]
        for turn in range(3):
            for one in waiting if turn % 2 else reversed(waiting):
                one.switch()
    assert only(recording.profile, "SELECT ? AS switching").count == 100
