"""Drivers whose methods have decorators."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import queryprof

pytestmark = pytest.mark.once

PAUSE_S = 0.02
DRIVER = f"""
import asyncio
import functools

def decorated(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)
    return call

class Cursor:
    def fetchone(self):
        return None

class Connection:
    @decorated
    @decorated
    @decorated
    async def execute(self, sql):
        await asyncio.sleep({PAUSE_S})
        return self

def connect():
    return Connection()
"""


def test_a_decorated_coroutine_function_is_measured_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "decorated_driver.py").write_text(DRIVER)
    monkeypatch.syspath_prepend(str(tmp_path))
    queryprof.instrument("decorated_driver")

    with queryprof.profile() as recording:
        import decorated_driver

        asyncio.run(decorated_driver.connect().execute("SELECT 1"))
    (execute,) = (one for one in recording.profile.aggregates if one.operation == "execute")
    assert execute.count == 1
    assert execute.total_ns >= PAUSE_S * 1e9
    del sys.modules["decorated_driver"]
