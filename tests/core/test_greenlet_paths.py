"""A greenlet's call path continues with its parents', even if a thread had the same frames."""

from __future__ import annotations

import _thread
import sqlite3

import pytest

import queryprof


def work(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT 1")


def test_after_a_thread_without_a_caller() -> None:
    greenlet = pytest.importorskip("greenlet")
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    done = _thread.allocate_lock()

    def in_a_thread(connection: sqlite3.Connection) -> None:
        work(connection)
        done.release()

    def checkout() -> None:
        greenlet.greenlet(in_a_thread).switch(connection)

    with queryprof.profile() as recording:
        for _ in range(2):
            done.acquire()
            _thread.start_new_thread(in_a_thread, (connection,))
            done.acquire()
            checkout()
    connection.close()
    paths = {
        tuple(frame.function.rpartition(".")[2] for frame in a.path[:3]): a.count
        for a in recording.profile.aggregates
        if a.operation == "execute"
    }
    assert paths == {
        ("work", "in_a_thread"): 2,
        ("work", "in_a_thread", "checkout"): 2,
    }
