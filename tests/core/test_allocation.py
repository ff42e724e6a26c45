"""Out of memory: recording does not start, or continues without the memory, and nothing else
happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest

import queryprof
from conftest import by_operation
from queryprof.core import _core

pytestmark = pytest.mark.skipif(
    not hasattr(_core, "fail_allocation_after"), reason="built without fault injection"
)


def ask() -> list[tuple[int]]:
    connection = sqlite3.connect(":memory:")
    rows = connection.execute("SELECT 1 UNION SELECT 2").fetchall()
    connection.close()
    return rows


@queryprof.span("coroutine")
async def ask_in_thread() -> list[tuple[int]]:
    return await asyncio.to_thread(ask)


def work() -> list[tuple[int]]:
    with queryprof.span("work"):
        assert asyncio.run(ask_in_thread()) == [(1,), (2,)]
        return ask()


@pytest.mark.parametrize("successes", range(80))
def test_any_single_allocation_may_fail(successes: int) -> None:
    """Whichever allocation fails, the start raises an error or records, and the next start
    works.
    """
    _core.fail_allocation_after(successes)
    with contextlib.suppress(queryprof.SessionError), queryprof.profile():
        assert work() == [(1,), (2,)]
    _core.fail_allocation_after(-1)
    with queryprof.profile() as recording:
        assert work() == [(1,), (2,)]
    assert by_operation(recording.profile)["SELECT ? UNION SELECT ?", "execute"] == 2
