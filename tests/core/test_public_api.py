"""The public functions: install, profile, span."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import io
import os
import sqlite3
import sys
import threading
import time
from pathlib import Path

import pytest

import queryprof
from conftest import by_operation
from queryprof.collect.reader import read_profile
from queryprof.model import Profile
from queryprof.recorder.session import session


def ask(text: str = "SELECT 1") -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(text).fetchall()
    connection.close()


def spans(profile: Profile) -> dict[str, int]:
    counts: dict[str, int] = {}
    for a in profile.aggregates:
        if a.operation == "execute":
            counts[a.span] = counts.get(a.span, 0) + a.count
    return counts


def test_install_and_uninstall() -> None:
    """Recording goes from one to the other. A second install does nothing."""
    queryprof.install("a.qprof")
    assert queryprof.is_installed()
    queryprof.install("b.qprof")
    ask()
    queryprof.uninstall()
    queryprof.uninstall()
    assert not queryprof.is_installed()
    ask()
    assert by_operation(read_profile("a.qprof"))["SELECT ?", "execute"] == 1
    assert not Path("b.qprof").exists()


def test_a_profile_inside_a_recording_has_its_own_part() -> None:
    """Both have the calls of the block. The outer one also has the rest."""
    queryprof.install("all.qprof")
    ask()
    with queryprof.profile("part.qprof") as part:
        ask()
        with queryprof.profile() as inner:
            ask()
    ask()
    queryprof.uninstall()
    counts = [
        by_operation(p)["SELECT ?", "execute"]
        for p in (inner.profile, part.profile, read_profile("all.qprof"))
    ]
    assert counts == [1, 2, 4]


def test_a_profile_reports_and_an_exception_passes() -> None:
    """The program gets the block's exception. Everything measured until then is kept."""
    recording = queryprof.profile("a.qprof")
    with pytest.raises(queryprof.SessionError, match="has not ended"):
        recording.report()
    with pytest.raises(KeyError, match="mine"), recording:
        ask()
        raise KeyError("mine")
    text = io.StringIO()
    recording.report(file=text)
    assert "1 execution of 1 statement" in " ".join(text.getvalue().split())
    with pytest.raises(queryprof.SessionError, match="already been used"), recording:
        pass


def test_spans_nest_and_are_kept_apart_by_context() -> None:
    """Spans work in tasks, in threads that run in a copy of the context, and as decorators."""

    @queryprof.span("sync")
    def sync() -> None:
        """Doc."""
        ask()

    @queryprof.span("async")
    async def asynchronous() -> None:
        await asyncio.sleep(0)
        ask()
        await asyncio.to_thread(ask)

    async def tasks() -> None:
        async def task(name: str) -> None:
            with queryprof.span(name):
                for _ in range(3):
                    await asyncio.sleep(0)
                    ask()

        await asyncio.gather(*(task(f"task {n}") for n in range(4)), asynchronous())

    with queryprof.profile() as recording:
        ask()
        with queryprof.span("outer"):
            ask()
            sync()
            with queryprof.span("inner"):
                ask()
            ask()
            context = contextvars.copy_context()
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pool.submit(context.run, ask).result()
                pool.submit(ask).result()
        asyncio.run(tasks())
    assert spans(recording.profile) == {
        "": 1,
        "outer": 4,
        "sync": 1,
        "inner": 1,
        "async": 2,
        **{f"task {n}": 3 for n in range(4)},
    }
    assert sync.__doc__ == "Doc."


def test_spans_do_nothing_while_nothing_is_recorded() -> None:
    """A span needs a name."""
    with queryprof.span("x"):
        ask()
    with pytest.raises(TypeError, match="needs a name"):
        queryprof.span("")


def test_many_spans_fold() -> None:
    """More span names than fit are counted under (other)."""
    with queryprof.profile() as recording:
        for number in range(1200):
            with queryprof.span(f"request {number}"):
                ask()
    counts = spans(recording.profile)
    assert sum(counts.values()) == 1200
    assert counts["(other)"] > 100


def test_coverages_own_connections_are_not_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries of an installed package named coverage are skipped, with their rows."""
    package = tmp_path / "site-packages" / "coverage"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import sqlite3\ndef save():\n    c = sqlite3.connect(':memory:')\n"
        "    rows = c.execute('SELECT 1')\n    rows.fetchall()\n    c.close()\n    return rows\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    monkeypatch.setitem(sys.modules, "coverage", sys)  # the test's end puts back what was there
    del sys.modules["coverage"]
    with queryprof.profile() as recording:
        import coverage

        coverage.save()
        ask("SELECT 2")
    counts = by_operation(recording.profile)
    assert counts["SELECT ?", "execute"] == 1
    assert counts["SELECT ?", "fetchall"] == 1


@pytest.mark.parametrize("path", [None, "b.qprof"])
@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.repeats
def test_the_time_of_a_block_is_its_own(
    path: str | None, is_recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not include the start and the upkeep of the recording."""
    borders_unix_ns = []

    def noting(name: str, is_before: bool) -> None:
        whole = getattr(queryprof.Recording, name)

        def noted(self: queryprof.Recording) -> object:
            if is_before:
                borders_unix_ns.append(time.time_ns())
            return whole(self)

        monkeypatch.setattr(queryprof.Recording, name, noted)

    noting("_load", is_before=True)
    begin = session.parts.begin_reading

    def begun() -> int:
        number = begin()
        borders_unix_ns.append(time.time_ns())
        return number

    monkeypatch.setattr(session.parts, "begin_reading", begun)
    if is_recorded:
        queryprof.install("a.qprof")
    with queryprof.profile(path) as recording:
        ask()
    queryprof.uninstall()
    (process,) = recording.profile.processes
    began, ended = borders_unix_ns
    assert began <= process.start_unix_ns <= process.end_unix_ns <= ended
    if path:
        assert read_profile(path).processes[0].wall_ns == process.wall_ns


def test_a_block_around_two_recordings_leaves_no_files() -> None:
    with queryprof.profile() as block:
        for name in ("a.qprof", "b.qprof"):
            queryprof.install(name)
            ask()
            queryprof.uninstall()
    assert sorted(os.listdir()) == ["a.qprof", "b.qprof"]
    assert "ended inside" in " ".join(block.profile.left_out)


def test_a_block_whose_install_fails_ends_its_recording() -> None:
    with queryprof.profile():
        with pytest.raises(queryprof.QueryprofError):
            queryprof.install(".")
        ask()
    assert not queryprof.is_installed()
    assert not session.is_on


@pytest.mark.slow
def test_recordings_that_threads_start_and_stop_inside_a_block() -> None:
    """The block's parts stay until its end, whatever else is recovered. One of 20 rounds failed."""

    def change(name: str, is_over: threading.Event) -> None:
        for number in range(5):
            queryprof.install(f"{name}{number}.qprof")
            queryprof.uninstall()
        is_over.set()

    def work(is_over: threading.Event) -> None:
        while not is_over.is_set():
            with queryprof.span("work"):
                ask()

    def read() -> None:
        for _ in range(5):
            with queryprof.profile():
                ask()

    for round_number in range(100):
        is_over = threading.Event()
        with queryprof.profile():
            threads = [
                threading.Thread(target=change, args=(f"a{round_number}-", is_over)),
                threading.Thread(target=change, args=(f"b{round_number}-", is_over)),
                threading.Thread(target=work, args=(is_over,)),
                threading.Thread(target=read),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        queryprof.uninstall()
