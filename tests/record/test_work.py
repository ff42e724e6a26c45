"""Where work belongs: handed to other threads, in spans, noted by a library; and what threads use."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryprof
from conftest import only, traces_in
from queryprof.model import Aggregate, Handoff, Profile, Span

HERE = Path(__file__).name


def ask(number: int = 1) -> int:
    connection = sqlite3.connect(":memory:")
    (found,) = connection.execute("SELECT ?", (number,)).fetchone()
    connection.close()
    return int(found)


def functions(aggregate: Aggregate) -> list[str]:
    """The functions of a call path; what runs the tests may be a string (pytest-xdist)."""
    path = [frame for frame in aggregate.path if frame.file != "<string>"]
    assert {Path(frame.file).name for frame in path} == {HERE}
    return [frame.function.rpartition(".")[2] for frame in path]


def handoff(profile: Profile, function: str) -> Handoff:
    (found,) = [h for h in profile.handoffs if h.path[0].function.endswith(function)]
    return found


def span_of(profile: Profile, name: str) -> Span:
    (found,) = [span for span in profile.spans if span.name == name]
    return found


def test_thread_pools() -> None:
    """The worker's own frames first, then those of who submitted; the span is the submitter's."""

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


def test_a_pool_with_too_few_threads() -> None:
    """The wait for a thread is apart from the work; errors and what never ran are counted."""
    release = threading.Event()

    def slow() -> None:
        ask()
        release.wait(5)

    def fails() -> None:
        ask()
        raise LookupError

    def submits(pool: concurrent.futures.Executor) -> None:
        first = pool.submit(slow)
        queued = []
        for _ in range(5):
            queued.append(pool.submit(ask))  # noqa: PERF401 a frame of its own
        never = pool.submit(ask)
        assert never.cancel()
        failing = pool.submit(fails)
        time.sleep(0.2)
        release.set()
        first.result()
        assert [f.result() for f in queued] == [1] * 5
        assert isinstance(failing.exception(), LookupError)

    with queryprof.profile() as recording, concurrent.futures.ThreadPoolExecutor(1) as pool:
        submits(pool)
    handoffs = [h for h in recording.profile.handoffs if h.path[0].function.endswith("submits")]
    assert sum(h.count for h in handoffs) == 7  # what never ran never called a driver
    assert sum(h.errors for h in handoffs) == 1
    waited = [h for h in handoffs if h.queue.total_ns > 150_000_000]
    assert sum(h.queue.count for h in waited) == 6
    assert all(h.queue.max_ns >= 190_000_000 for h in waited)
    ran = sum(h.run.total_ns for h in handoffs)
    assert 190_000_000 < ran < 1_000_000_000


def test_what_programs_see_of_a_pool() -> None:
    """The same results, errors, names and types with and without recording."""

    def named() -> str:
        """Gives its name."""
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
    """One connection, many tasks: the line of the await, and the time in four parts."""
    aiosqlite = pytest.importorskip("aiosqlite")

    async def load(database: object, number: int) -> int:
        async with database.execute("SELECT ?", (number,)) as cursor:  # type: ignore[attr-defined]
            row = await cursor.fetchone()
            return int(row[0])

    async def fails(database: object) -> None:
        with pytest.raises(sqlite3.OperationalError):
            await database.execute("SELECT * FROM missing")  # type: ignore[attr-defined]

    async def is_cancelled(database: object) -> None:
        await database.execute_fetchall(SLOW)  # type: ignore[attr-defined]

    async def main() -> list[int]:
        async with aiosqlite.connect(":memory:") as database:
            with queryprof.span("gathered"):
                found = await asyncio.gather(*(load(database, n) for n in range(50)))
            await fails(database)
            task = asyncio.create_task(is_cancelled(database))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
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
    assert cancelled.run.max_ns > 50_000_000
    assert cancelled.handback.count == 0


SLOW = """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000)
SELECT count(*) FROM n"""


def test_twisted(script: Callable[[str], Path]) -> None:
    """DeferToThread and adbapi: the line that deferred."""
    pytest.importorskip("twisted")
    script(
        """
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
"""
    )
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
    """A driver that runs in a greenlet whose stack has none of the program's frames."""
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


def test_wall_and_cpu_time() -> None:
    """A block that computes and one that waits differ; a coroutine's is its own."""

    def compute(seconds: float) -> None:
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass

    @queryprof.span("coroutine")
    async def coroutine() -> None:
        compute(0.05)
        await asyncio.sleep(0.1)

    async def others() -> None:
        for _ in range(10):
            compute(0.01)
            await asyncio.sleep(0.001)

    async def main() -> None:
        with queryprof.span("awaiting block"):
            await asyncio.gather(coroutine(), others())
        with queryprof.span("block"):
            compute(0.03)

    with queryprof.profile() as recording:
        with queryprof.span("computes"):
            compute(0.1)
        with queryprof.span("waits"):
            time.sleep(0.1)
        with pytest.raises(LookupError), queryprof.span("fails"):
            raise LookupError
        asyncio.run(main())
    profile = recording.profile
    cpu_ms = {s.name: round(s.cpu_ns / 1e6) if s.cpu_count else None for s in profile.spans}
    assert cpu_ms["computes"] in range(99, 115)
    assert cpu_ms["waits"] in range(10)
    assert cpu_ms["coroutine"] in range(49, 65)
    assert cpu_ms["block"] in range(29, 45)
    assert cpu_ms["awaiting block"] is None
    assert span_of(profile, "waits").durations.total_ns > 99_000_000
    assert {s.name: s.errors for s in profile.spans if s.errors} == {"fails": 1}


SHAPE = st.recursive(
    st.lists(st.sampled_from("ab"), max_size=15),
    lambda inner: st.lists(st.one_of(st.sampled_from("ab"), inner), max_size=6),
    max_leaves=20,
)


@settings(max_examples=30, deadline=None)
@given(shape=SHAPE)
def test_spans_count_what_is_in_them(shape: list[object]) -> None:
    """Random nests of spans and queries: counts, maxima and repeats are those of a model."""
    connection = sqlite3.connect(":memory:")
    model: dict[str, list[tuple[int, dict[str, int]]]] = {}

    def ask_a() -> None:
        connection.execute("SELECT 1 AS a").fetchone()

    def ask_b() -> None:
        connection.execute("SELECT 1 AS b").fetchone()

    def work(parts: list[object], depth: int) -> dict[str, int]:
        name = f"depth {depth}"
        asked = {"a": 0, "b": 0}
        with queryprof.span(name):
            for part in parts:
                if isinstance(part, list):
                    for key, count in work(part, depth + 1).items():
                        asked[key] += count
                else:
                    (ask_a if part == "a" else ask_b)()
                    asked[str(part)] += 1
        model.setdefault(name, []).append((sum(asked.values()), asked))
        return asked

    with queryprof.profile() as recording:
        work(shape, 0)
    connection.close()
    spans = {span.name: span for span in recording.profile.spans}
    assert set(spans) == set(model)
    for name, instances in model.items():
        span = spans[name]
        assert span.count == len(instances)
        assert span.queries.total_ns == sum(count for count, _ in instances)
        assert span.queries.max_ns == max(count for count, _ in instances)
        for key in "ab":
            many = [asked[key] for _, asked in instances if asked[key] > 10]
            found = [r for r in span.repeats if r.statement == f"SELECT ? AS {key}"]
            # One function, called from several lines: each is a call path of its own.
            assert sum(r.executions for r in found) <= sum(many)
            if not many:
                assert not found


def test_spans_in_threads_tasks_and_after_their_end() -> None:
    """What a task or a thread asks for a span counts there; what comes after its end does not."""
    contexts = []

    def request(number: int) -> None:
        with queryprof.span("request"):
            contexts.append(contextvars.copy_context())
            for _ in range(number):
                ask()

    async def task() -> None:
        with queryprof.span("request"):
            await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(4)))

    async def tasks() -> None:
        await asyncio.gather(*(task() for _ in range(20)))

    with queryprof.profile() as recording:
        threads = [threading.Thread(target=request, args=(n,)) for n in range(1, 21)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asyncio.run(tasks())
        contexts[0].run(ask)  # its span has ended
    span = span_of(recording.profile, "request")
    assert (span.count, span.queries.total_ns, span.queries.max_ns) == (40, 210 + 80, 20)
    executed = sum(a.count for a in recording.profile.aggregates if a.operation == "execute")
    assert executed == 291
    # A span of an earlier recording means nothing in this one.
    with queryprof.profile() as recording:
        contexts[0].run(ask)
    assert {a.span for a in recording.profile.aggregates} == {""}


def test_more_spans_at_once_than_there_is_room_for() -> None:
    """The oldest are known by their names alone, and nothing else suffers."""
    with queryprof.profile() as recording:
        spans = [queryprof.span(f"span {n % 5}") for n in range(1500)]
        for span in spans:
            span.__enter__()
        ask()
        for span in reversed(spans):
            span.__exit__(None, None, None)
    assert 1000 <= sum(span.count for span in recording.profile.spans) <= 1500
    assert only(recording.profile, "SELECT ?").span == "span 4"


def test_what_threads_use() -> None:
    """CPU time, switches, bytes and calls of each thread, of short-lived ones too."""
    if not os.path.exists("/proc/self/task"):
        pytest.skip("needs Linux")

    def computes() -> None:
        ask()
        until = time.thread_time() + 0.5
        while time.thread_time() < until:
            pass

    def reads() -> None:
        ask()
        for _ in range(1000):
            with open(__file__, "rb", buffering=0) as file:
                file.read(1000)

    def sleeps() -> None:
        ask()
        for _ in range(200):
            time.sleep(0.0001)

    with queryprof.profile() as recording:
        for work in (computes, reads, sleeps):
            thread = threading.Thread(target=work, name=work.__name__)
            thread.start()
            thread.join()
        time.sleep(0.05)
    usage = {u.thread.name: u for u in recording.profile.thread_usage}
    assert 490_000_000 <= usage["computes"].user_ns + usage["computes"].system_ns < 800_000_000
    assert usage["reads"].read_bytes == 1_000_000
    assert usage["reads"].read_calls == 1000
    assert usage["sleeps"].voluntary_switches >= 200
    # An emulated processor's events between threads are writes of its threads.
    assert usage["MainThread"].written_bytes < 100


def test_the_profilers_own_work_is_no_threads() -> None:
    """What it takes to write the trace is not the program's."""
    if not os.path.exists("/proc/self/task"):
        pytest.skip("needs Linux")
    with queryprof.profile("x.qprof"):
        for number in range(40):
            with closing(sqlite3.connect(":memory:")) as connection:
                connection.execute(f"SELECT {number} AS n{number}").fetchall()
        time.sleep(1.3)
        ask()
        time.sleep(1.3)
        ask()
    (profile,) = traces_in(Path())
    usage = {u.thread.name: u for u in profile.thread_usage}
    assert usage["MainThread"].written_bytes < 1000
