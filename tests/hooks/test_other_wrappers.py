"""Wrappers that another tool puts around the functions that are measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import queryprof
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once

DRIVER = """
class Cursor:
    def execute(self, sql): return self
    def fetchone(self): return None

class Connection:
    def __init__(self): self.calls = []
    def execute(self, sql): self.calls.append(sql)
    def commit(self): self.calls.append("commit")

def connect(): return Connection()
"""


def test_what_was_put_around_a_measured_function_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrapped_driver.py").write_text(DRIVER)
    monkeypatch.syspath_prepend(str(tmp_path))
    queryprof.instrument("wrapped_driver")
    queryprof.install("x.qprof")
    import wrapped_driver

    seen: list[str] = []

    def around(name: str) -> Any:
        measured = getattr(wrapped_driver.Connection, name)

        def wrapper(self: Any, *arguments: object) -> object:
            seen.append(name)
            return measured(self, *arguments)

        return wrapper

    wrappers = {name: around(name) for name in ("execute", "commit")}
    for name, wrapper in wrappers.items():
        setattr(wrapped_driver.Connection, name, wrapper)
    for _ in range(2):
        connection = wrapped_driver.connect()
        connection.execute("SELECT 1")
        connection.commit()
        assert connection.calls == ["SELECT 1", "commit"]
        queryprof.uninstall()
        for name, wrapper in wrappers.items():
            assert vars(wrapped_driver.Connection)[name] is wrapper
    assert seen == ["execute", "commit"] * 2
    counts = [one.count for one in read_profile("x.qprof").aggregates]
    assert counts == [1] * 3
    del sys.modules["wrapped_driver"]
