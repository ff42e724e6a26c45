"""Executions with the same parameters as one shortly before, in the same request or thread."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

import pytest

import queryprof
from queryprof.model import ParameterSample

pytestmark = pytest.mark.once

EXECUTIONS = 4000
"""Enough for at least 100 samples."""

QUERY = "SELECT ? AS a"


def sampled(work: Callable[[sqlite3.Connection], None]) -> ParameterSample:
    with queryprof.profile() as recording:
        db = sqlite3.connect(":memory:", check_same_thread=False)
        db.execute("CREATE TABLE t (a)")
        work(db)
        db.close()
    (found,) = [one for one in recording.profile.parameters if one.statement == QUERY]
    return found


def execute(db: sqlite3.Connection, value: int) -> None:
    db.execute("SELECT ? AS a", (value,)).fetchone()


def in_one_request(db: sqlite3.Connection) -> None:
    with queryprof.span("request"):
        for number in range(EXECUTIONS):
            with queryprof.span("part"):
                execute(db, number % 3)


def in_a_request_each(db: sqlite3.Connection) -> None:
    for _ in range(EXECUTIONS):
        with queryprof.span("request"):
            execute(db, 7)


def in_one_thread(db: sqlite3.Connection) -> None:
    for _ in range(EXECUTIONS):
        execute(db, 7)


def in_a_thread_each(db: sqlite3.Connection) -> None:
    for _ in range(EXECUTIONS):
        thread = threading.Thread(target=execute, args=(db, 7))
        thread.start()
        thread.join()


def with_writes_between(db: sqlite3.Connection) -> None:
    for _ in range(EXECUTIONS):
        execute(db, 7)
        db.execute("INSERT INTO t VALUES (1)")


@pytest.mark.parametrize(
    ("work", "repeats"),
    [
        (in_one_request, True),
        (in_a_request_each, False),
        (in_one_thread, True),
        (in_a_thread_each, False),
        (with_writes_between, False),
    ],
    ids=lambda work: getattr(work, "__name__", None),
)
@pytest.mark.repeats
def test_what_repeats(work: Callable[[sqlite3.Connection], None], repeats: bool) -> None:
    """An execution in another request is no repeat: the rows may have been changed elsewhere."""
    found = sampled(work)
    assert found.samples > 100
    assert found.repeats == (pytest.approx(found.samples, abs=3) if repeats else 0)


def test_values_that_come_in_turn_repeat() -> None:
    """For example, a cache of 64 values for 100 that are needed in turn."""

    def work(db: sqlite3.Connection) -> None:
        for number in range(EXECUTIONS):
            execute(db, number % 20)

    found = sampled(work)
    assert found.repeats >= found.samples - 20


def test_threads_that_come_and_go_are_sampled_at_different_places() -> None:
    """A thread reuses the memory of one that has ended, but not its random numbers. Otherwise each
    would sample the same of its executions.
    """

    def some(db: sqlite3.Connection) -> None:
        for number in range(8):
            execute(db, number)

    def threads(db: sqlite3.Connection) -> None:
        for _ in range(400):
            thread = threading.Thread(target=some, args=(db,))
            thread.start()
            thread.join()

    assert 100 < sampled(threads).samples < 300


def test_all_slow_executions_are_sampled() -> None:
    """Few slow executions may take most of the time."""

    def work(db: sqlite3.Connection) -> None:
        db.create_function("slowly", 1, lambda value: time.sleep(0.002) or value)
        for _ in range(20):
            db.execute("SELECT slowly(?)", (7,)).fetchone()

    with queryprof.profile() as recording:
        db = sqlite3.connect(":memory:")
        work(db)
        db.close()
    (found,) = [one for one in recording.profile.parameters if "slowly" in one.statement]
    assert (found.samples, found.repeats) == (20, 19)
    assert 0 < found.slow <= 16  # the first four count like those chosen at random


@pytest.mark.parametrize(("size", "are_compared"), [(72, True), (88, False)])
def test_many_large_values_are_not_compared(size: int, are_compared: bool) -> None:
    """Hashing more than 8,192 characters would take a part of the statement's time."""
    values = [b"%8d" % number * (size // 8) for number in range(100)]
    with queryprof.profile() as recording:
        db = sqlite3.connect(":memory:")
        for _ in range(200):
            db.execute(f"SELECT ? IN ({'?, ' * 98}?)", values).fetchall()
        db.close()
    assert bool(recording.profile.parameters) == are_compared
