"""The slowest spans: their queries in order, whatever runs at the same time and however they
end.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queryprof
from conftest import EXAMPLES, Run
from queryprof.collect.merge import merge_traces
from queryprof.collect.reader import read_profile
from queryprof.model import Profile, SlowSpan

pytestmark = pytest.mark.once

MOST_RUNS = 64
KEPT, KEPT_OF_MERGED = 3, 5


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    connection.executemany("INSERT INTO t VALUES (?, 0)", [(number,) for number in range(100)])
    connection.commit()
    yield connection
    connection.close()


def slowest(profile: Profile, name: str) -> list[SlowSpan]:
    return [one for one in profile.slow_spans if one.name == name]


def checked(one: SlowSpan) -> SlowSpan:
    """Return the span after checking its runs: inside it, in order, and with the same total."""
    assert sum(run.self_ns for run in one.runs) == one.database_ns
    starts = [run.start_ns for run in one.runs]
    assert starts == sorted(starts)
    for run in one.runs:
        assert 0 <= run.start_ns < run.end_ns <= one.duration_ns
    return one


def test_calls_in_order(db: sqlite3.Connection) -> None:
    def look_up(number: int) -> None:
        db.execute("SELECT b FROM t WHERE a = ?", (number,)).fetchall()

    with queryprof.profile() as recording, queryprof.span("page") as page:
        db.execute("SELECT * FROM t WHERE a < 10").fetchall()
        with queryprof.span("part"):
            for number in range(7):
                look_up(number)
        db.execute("UPDATE t SET b = 1 WHERE a < 4")
        db.commit()
        look_up(1)
        page.set_status(404)
    (page_,) = slowest(recording.profile, "page")
    checked(page_)
    shown = [
        (run.statement.split()[0], run.operation, run.span, run.executions, run.rows)
        for run in page_.runs
    ]
    assert shown == [
        ("SELECT", "execute", "page", 1, 10),
        ("SELECT", "execute", "part", 7, 7),
        ("UPDATE", "execute", "page", 1, 4),
        ("COMMIT", "commit", "page", 1, 0),
        ("SELECT", "execute", "page", 1, 1),
    ]
    assert (page_.executions, page_.status, page_.failed) == (10, 404, False)
    assert page_.runs[1].path[0].function.endswith("look_up")
    (part,) = slowest(recording.profile, "part")
    assert checked(part).executions == 7
    assert part.status is None


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4)), max_size=90))
@pytest.mark.slow
def test_runs_are_of_equal_calls(calls: list[tuple[str, int]]) -> None:
    """The model has a run for each group of equal calls, and a last run for the rest."""
    with (
        closing(sqlite3.connect(":memory:")) as db,
        queryprof.profile() as recording,
        queryprof.span("s"),
    ):
        for name, times in calls:
            for _ in range(times):
                db.execute(f"SELECT 1 AS {name}")
    expected: list[list[object]] = []
    for name, times in calls:
        statement = f"SELECT ? AS {name}"
        if expected and expected[-1][0] == statement:
            expected[-1][1] += times  # type: ignore[operator]
        else:
            expected.append([statement, times])
    if len(expected) >= MOST_RUNS:
        rest = sum(count for _, count in expected[MOST_RUNS - 1 :])  # type: ignore[misc]
        expected = [*expected[: MOST_RUNS - 1], ["(other)", rest]]
    (span,) = recording.profile.slow_spans
    assert [[run.statement, run.executions] for run in checked(span).runs] == expected


def test_the_slowest_are_kept() -> None:
    """Three spans of each name are kept, in any order, including those that fail or run no
    query.
    """
    waited_ns: list[int] = []
    with queryprof.profile() as recording:
        for ms in (3, 9, 1, 7, 5, 0):
            with queryprof.span("waits"):
                start_ns = time.perf_counter_ns()
                time.sleep(ms / 200)
                waited_ns.append(time.perf_counter_ns() - start_ns)
        with pytest.raises(LookupError), queryprof.span("fails"):
            raise LookupError
    waits = slowest(recording.profile, "waits")
    assert len(waits) == KEPT
    for one, least_ns in zip(waits, sorted(waited_ns)[: -KEPT - 1 : -1], strict=True):
        assert least_ns <= one.duration_ns * 1.002
        assert one.runs == ()
    assert [one.failed for one in slowest(recording.profile, "fails")] == [True]


def test_more_names_than_there_is_room_for() -> None:
    """The totals include all spans. Single spans are kept only for the first names."""
    with queryprof.profile() as recording:
        for number in range(300):
            with queryprof.span(f"name {number}"):
                pass
    assert len(recording.profile.spans) == 300
    assert 200 < len(recording.profile.slow_spans) <= 256


def test_threads_and_tasks_mix_nothing(db: sqlite3.Connection) -> None:
    """Each span has its own calls, however they overlap."""

    async def serve(name: str) -> None:
        with queryprof.span(name):
            for _ in range(5):
                db.execute(f"SELECT 1 AS {name}")
                await asyncio.sleep(0)
                await asyncio.to_thread(db.execute, f"SELECT 2 AS {name}")

    async def main() -> None:
        await asyncio.gather(*[serve(name) for name in "abc"])

    def in_thread(name: str) -> None:
        with queryprof.span(name):
            for _ in range(200):
                db.execute(f"SELECT 1 AS {name}")

    with queryprof.profile() as recording:
        asyncio.run(main())
        threads = [threading.Thread(target=in_thread, args=(name,)) for name in "de"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for one in recording.profile.slow_spans:
        assert {run.statement for run in one.runs} == {f"SELECT ? AS {one.name}"}
        assert (
            sum(run.executions for run in one.runs)
            == one.executions
            == (10 if one.name in "abc" else 200)
        )
    tasks = slowest(recording.profile, "a")
    assert len({run.thread for run in tasks[0].runs}) > 1


def test_many_at_once(db: sqlite3.Connection) -> None:
    """More spans run than have room for their calls. The others have no calls instead of wrong
    ones.
    """

    async def serve(number: int) -> None:
        with queryprof.span(f"{number % 40}"):
            db.execute("SELECT 1")
            await asyncio.sleep(0)
            db.execute("SELECT 2")

    async def main() -> None:
        await asyncio.gather(*[serve(number) for number in range(2000)])

    with queryprof.profile() as recording:
        asyncio.run(main())
        db.execute("SELECT 3")
        with queryprof.span("after"):
            db.execute("SELECT 4")
    for one in recording.profile.slow_spans:
        assert sum(run.executions for run in one.runs) in (0, one.executions)
    (after,) = slowest(recording.profile, "after")
    assert len(checked(after).runs) == 1


def test_calls_that_outlive_their_span(db: sqlite3.Connection) -> None:
    """A cursor that continues after its span's end adds nothing to the next span in its slot."""
    with queryprof.profile() as recording:
        with queryprof.span("begins"):
            cursor = db.execute("SELECT * FROM t")
            cursor.fetchone()
        with queryprof.span("other"):
            assert len(cursor.fetchall()) == 99
            db.execute("SELECT 1")
    (other,) = slowest(recording.profile, "other")
    assert [run.statement for run in checked(other).runs] == ["SELECT ?"]


PROGRAM = """
import os, sqlite3, sys, time, queryprof
db = sqlite3.connect(":memory:")
def serve(ms):
    with queryprof.span("request"):
        start = time.perf_counter_ns()
        for _ in range(ms):
            db.execute("SELECT 1")
        time.sleep(ms / 200)
        print(ms, time.perf_counter_ns() - start, flush=True)
for ms in map(int, sys.argv[2:]):
    serve(ms)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
if sys.argv[1] == "forks" and os.fork() == 0:
    serve(5)
    sys.exit()
if sys.argv[1] == "forks":
    os.wait()
"""


def measured(text: str) -> dict[int, int]:
    """Return the durations by the program's own clock, by the number of a span's executions."""
    return {int(executions): int(ns) for executions, ns in map(str.split, text.splitlines())}


def are_slowest(kept: list[SlowSpan], least_ns: dict[int, int]) -> bool:
    """Return whether no other span took longer, by the program's own clock."""
    numbers = {one.executions for one in kept}
    others = [ns for executions, ns in least_ns.items() if executions not in numbers]
    shortest_ns = min(one.duration_ns for one in kept)
    return numbers <= set(least_ns) and all(ns <= shortest_ns * 1.002 for ns in others)


@pytest.mark.once
@pytest.mark.parametrize("end", ["killed", "forks", "ends"])
@pytest.mark.repeats
def test_in_a_trace(queryprof: Run, script: Callable[[str], Path], end: str) -> None:
    """This also holds after a kill. A forked child has its own spans."""
    result = queryprof("run", "--no-report", "-o", "x.qprof", script(PROGRAM), end, 1, 20, 10, 30)
    found = slowest(read_profile("x.qprof"), "request")
    of_child = [one for one in found if one.executions == 5]
    assert len(of_child) == (end == "forks")
    of_parent = [one for one in found if one.executions != 5]
    assert len({one.executions for one in of_parent}) == KEPT
    least_ns = measured(result.stdout)
    least_ns.pop(5, None)
    assert are_slowest(of_parent, least_ns)
    for one in found:
        assert [run.executions for run in checked(one).runs] == [one.executions]


@pytest.mark.once
@pytest.mark.slow
def test_a_merge_keeps_the_slowest(queryprof: Run, script: Callable[[str], Path]) -> None:
    program, of_all = script(PROGRAM), []
    for name, times in (("a", (1, 20, 10, 30)), ("b", (15, 25, 2, 3))):
        queryprof("run", "--no-report", "-o", f"{name}.qprof", program, "ends", *times)
        of_all += slowest(read_profile(f"{name}.qprof"), "request")
    merge_traces("x.qprof", ["a.qprof", "b.qprof"])
    found = slowest(read_profile("x.qprof"), "request")
    by_length = sorted(of_all, key=lambda one: -one.duration_ns)
    assert len(by_length) == 2 * KEPT
    assert [(one.executions, one.duration_ns) for one in found] == [
        (one.executions, one.duration_ns) for one in by_length[:KEPT_OF_MERGED]
    ]
    assert sum(len(checked(one).runs) for one in found) == KEPT_OF_MERGED
    db = sqlite3.connect("x.qprof")
    assert db.execute("SELECT count(*) FROM span_run").fetchone() == (KEPT_OF_MERGED,)
    db.close()


def test_parts_of_a_recording_hold_their_own(tmp_path: Path) -> None:
    """Spans of one recording are not in the next."""
    for name in "ab":
        with queryprof.profile() as recording, queryprof.span(name):
            time.sleep(0.001)
        assert [one.name for one in recording.profile.slow_spans] == [name]


STALLS = """
import asyncio, time
async def main():
    await asyncio.sleep(0.05)
    for ms in (300, 150):
        time.sleep(ms / 1000)
        await asyncio.sleep(0.05)
asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["", "import os; os.kill(os.getpid(), 9)"])
@pytest.mark.repeats
def test_stalls_have_their_times(script: Callable[[str], Path], end: str) -> None:
    started_ns = time.time_ns()
    command = ["-m", "queryprof.cli.main", "run", "--no-report", "-o", "x.qprof"]
    subprocess.run(
        [Path(sys.executable).with_name("queryprof"), *command[2:], script(STALLS + end)],
        check=False,
        env=os.environ,
    )
    ended_ns = time.time_ns()
    (loop,) = read_profile("x.qprof").loops
    events = loop.stall_events
    assert len(events) == sum(stall.count for stall in loop.stalls) >= 2
    assert sum(event.duration_ns for event in events) == sum(one.total_ns for one in loop.stalls)
    assert [event.started_unix_ns for event in events] == sorted(
        event.started_unix_ns for event in events
    )
    for event in events:
        assert (
            started_ns
            < event.started_unix_ns
            < event.started_unix_ns + event.duration_ns
            < ended_ns
        )
    by_length = sorted(events, key=lambda event: -event.duration_ns)
    assert by_length[0].duration_ns >= 300_000_000
    assert by_length[1].duration_ns >= 150_000_000
    assert {event.function.function for event in by_length[:2]} == {"main"}
