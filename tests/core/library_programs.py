"""Programs that execute statements through a library, recorded in processes of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryprof.collect.reader import read_profile
from queryprof.model import LibraryTime

Run = Callable[..., CompletedProcess[str]]
Times = Callable[[str], dict[str, LibraryTime]]

LIBRARY = '''
"""A small object mapper."""
import sqlite3
import time

db = sqlite3.connect(":memory:", check_same_thread=False)
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
db.executemany("INSERT INTO item VALUES (?)", [(n,) for n in range(1000)])


def fetch(number):
    return db.execute("SELECT id FROM item WHERE id = ?", (number,)).fetchone()


def get(number):
    return fetch(number)[0]


def get_or_raise(number):
    if fetch(number)[0] % 2:
        raise LookupError(number)


def get_for(number, made):
    """Works for itself, and lets the program work."""
    start = time.perf_counter_ns()
    while time.perf_counter_ns() - start < 200_000:
        pass
    work.append(time.perf_counter_ns() - start)
    return made(fetch(number)[0])


def get_twice(number):
    return fetch(number), fetch(number + 1)


def get_and_count(number):
    db.execute("SELECT count(*) FROM item").fetchone()
    return get(number)


def nested(depth, number):
    return nested(depth - 1, number) if depth else get(number)


def all_of(numbers):
    for number in numbers:
        yield get(number)


def get_much(number, made=int):
    found = fetch(number)[0]
    for _ in range(3000):
        step(found)
    return made(found)


def get_deep(depth, number, made):
    return get_deep(depth - 1, number, made) if depth else get_for(number, made)


def dig(left, each):
    if left % 100 == 0:
        each()
    return dig(left - 1, each) if left else 0


def get_between(number, before, after):
    before()
    found = fetch(number)
    after()
    return found


def step(found):
    return found


work = []
'''

KEPT = 60
"""Calls of a watch that count: 64 less the longest of each 16."""

ITEM = "SELECT id FROM item WHERE id = ?"


def recorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queryprof: Run
) -> Callable[[str], dict[str, LibraryTime]]:
    """Runs a program, and returns what is known of the library by statement."""

    def run(program: str) -> dict[str, LibraryTime]:
        packages = tmp_path / "site-packages"
        (packages / "mapper").mkdir(parents=True)
        (packages / "mapper" / "__init__.py").write_text(LIBRARY)
        monkeypatch.setenv("PYTHONPATH", str(packages))
        (tmp_path / "app.py").write_text("import mapper\n" + textwrap.dedent(program))
        result = queryprof("run", "--no-report", "-o", "t.qprof", tmp_path / "app.py")
        assert result.returncode == 0, result.stderr
        return {one.statement: one for one in read_profile("t.qprof").library_times}

    return run
