"""A test suite, and runs of pytest on it with the plugin."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from queryprof.testing.baseline_file import read_baseline

SUITE = """
import sqlite3
import pytest

@pytest.fixture
def db():
    c = sqlite3.connect(":memory:")
    c.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    {index}
    c.executemany("INSERT INTO t VALUES (?, ?)", [(i, i % 50) for i in range(2000)])
    c.commit()
    yield c
    c.close()

def load(c, x):
    return c.execute("SELECT a FROM t WHERE {column} = ?", (x,)).fetchall()

def test_load(db):
    for x in range({times}):
        load(db, x)

@pytest.mark.parametrize("x", [1, 2])
def test_one(db, x):
    assert load(db, x)
    {extra}

def test_nothing():
    pass
"""


CREATE_INDEX = 'c.execute("CREATE INDEX i ON t (b)")'


def suite(name: str = "test_suite.py", **changes: object) -> None:
    values = {"index": CREATE_INDEX, "column": "b", "times": 5, "extra": "", **changes}
    Path(name).write_text(SUITE.format(**values))


class Result:
    """How a pytest run ended."""

    def __init__(self, returncode: int, stdout: str, stderr: str) -> None:
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


Run = Callable[..., Result]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest inside this process, in an empty directory."""
    monkeypatch.chdir(pytester.path)
    # A file that changes within a second and keeps its size would run from its old bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(*arguments: str) -> Result:
        linecache.clearcache()
        plain = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:asyncio")
        result = pytester.runpytest_inprocess(*plain, *arguments)
        return Result(int(result.ret), result.stdout.str(), result.stderr.str())

    return run


def baseline() -> dict[str, dict[str, dict[str, int]]]:
    return read_baseline("queryprof-baseline.json").tests  # type: ignore[return-value]
