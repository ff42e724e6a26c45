"""A long execution of many short fetches has a stack."""

from __future__ import annotations

import asyncio
import sqlite3
import time

import pytest

import queryprof
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once


@pytest.mark.parametrize("is_in_loop", [True, False])
def test_a_long_execution_of_many_short_fetches_has_a_stack(is_in_loop: bool) -> None:
    """This also holds in the thread of an event loop."""
    db = sqlite3.connect(":memory:")
    db.create_function("sleep", 1, lambda s: time.sleep(s) or 1)
    db.execute("CREATE TABLE t (a)")
    db.executemany("INSERT INTO t VALUES (?)", [(0,)] * 40)

    def work() -> None:
        for seconds in (*[0.001] * 8, 0.003):
            cursor = db.execute("SELECT sleep(?) FROM t", (seconds,))
            while cursor.fetchone():
                pass

    async def main() -> None:
        work()

    with queryprof.profile("t.qprof"):
        if is_in_loop:
            asyncio.run(main())
        else:
            work()
    db.close()
    slowest = max(read_profile("t.qprof").exemplars, key=lambda one: one.duration_ns)
    assert slowest.duration_ns >= 120_000_000
    assert slowest.stack
