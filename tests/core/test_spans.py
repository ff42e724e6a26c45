"""Spans: which calls belong to them, also in threads and tasks."""

from __future__ import annotations

import asyncio
import contextvars
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from core.work_programs import ask, span_of
from hypothesis import given, settings
from hypothesis import strategies as st

import queryprof
from conftest import only


def test_wall_and_cpu_time() -> None:
    """A computing block differs from a waiting one. A coroutine's times are its own."""
    least_s: Counter[str] = Counter()
    most_s: Counter[str] = Counter()

    def compute(name: str, seconds: float) -> None:
        start_s = time.thread_time()
        while time.thread_time() < start_s + seconds:
            sum(range(1000))
        least_s[name] += time.thread_time() - start_s

    @contextmanager
    def span(name: str) -> Iterator[None]:
        start_s = time.thread_time()
        with queryprof.span(name):
            yield
        most_s[name] += time.thread_time() - start_s

    @queryprof.span("coroutine")
    async def coroutine() -> None:
        compute("coroutine", 0.05)
        await asyncio.sleep(0.1)

    async def others() -> None:
        for _ in range(10):
            compute("others", 0.01)
            await asyncio.sleep(0.001)

    async def main() -> None:
        with span("awaiting block"):
            await asyncio.gather(coroutine(), others())
        with span("block"):
            compute("block", 0.03)

    with queryprof.profile() as recording:
        with span("computes"):
            compute("computes", 0.1)
        with span("waits"):
            time.sleep(0.1)
        with pytest.raises(LookupError), queryprof.span("fails"):
            raise LookupError
        asyncio.run(main())
    profile = recording.profile
    cpu_s = {s.name: s.cpu_ns / 1e9 if s.cpu_count else None for s in profile.spans}
    assert cpu_s.pop("awaiting block") is None
    most_s["coroutine"] = most_s["awaiting block"] - least_s["others"]
    for name in ("computes", "waits", "coroutine", "block"):
        assert least_s[name] <= (cpu_s[name] or 0.0) <= most_s[name], name
    assert span_of(profile, "waits").durations.total_ns > 99_000_000
    assert {s.name: s.errors for s in profile.spans if s.errors} == {"fails": 1}


SHAPE = st.recursive(
    st.lists(st.sampled_from("ab"), max_size=15),
    lambda inner: st.lists(st.one_of(st.sampled_from("ab"), inner), max_size=6),
    max_leaves=20,
)


@settings(max_examples=30, deadline=None)
@given(shape=SHAPE)
@pytest.mark.slow
def test_spans_count_what_is_in_them(shape: list[object]) -> None:
    """Counts, maxima and repeats of random nests of spans and queries are those of a model."""
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
    """Queries of a task or a thread for a span count there. Queries after its end do not."""
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
    """The oldest spans keep only their names. Nothing else suffers."""
    with queryprof.profile() as recording:
        spans = [queryprof.span(f"span {n % 5}") for n in range(1500)]
        for span in spans:
            span.__enter__()
        ask()
        for span in reversed(spans):
            span.__exit__(None, None, None)
    assert 1000 <= sum(span.count for span in recording.profile.spans) <= 1500
    assert only(recording.profile, "SELECT ?").span == "span 4"
