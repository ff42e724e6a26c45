"""Programs that execute statements through a library, recorded in processes of their own."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryprof.collect.reader import read_profile
from queryprof.model import LineTime

Run = Callable[..., CompletedProcess[str]]
Times = Callable[[str], dict[str, LineTime]]

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


def get_slowly(number):
    """Works long after the query."""
    found = fetch(number)[0]
    start = time.perf_counter_ns()
    while time.perf_counter_ns() - start < 200_000:
        pass
    return found


def get_for(number, made):
    return made(fetch(number)[0])


async def get_later(number, pause):
    found = fetch(number)[0]
    await pause
    return found


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


def get_between(number, before, after):
    before()
    found = fetch(number)
    after()
    return found


'''

LEAST = 7
"""Passes that are left of a watch of 16 when the next one has begun: all but the first and the longest,
halved.
"""

ITEM = "SELECT id FROM item WHERE id = ?"


def recorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queryprof: Run
) -> Callable[[str], dict[str, LineTime]]:
    """Run a program, and return what is known of the library, by statement."""

    def run(program: str) -> dict[str, LineTime]:
        packages = tmp_path / "site-packages"
        (packages / "mapper").mkdir(parents=True, exist_ok=True)
        (packages / "mapper" / "__init__.py").write_text(LIBRARY)
        monkeypatch.setenv("PYTHONPATH", str(packages))
        (tmp_path / "app.py").write_text("import mapper\n" + textwrap.dedent(program))
        result = queryprof("run", "--no-report", "-o", "t.qprof", tmp_path / "app.py")
        assert result.returncode == 0, result.stderr
        return {one.statement: one for one in read_profile("t.qprof").line_times}

    return run


def write_library(name: str, source: str, package: str = "mapper") -> None:
    """Add a module to a package, the object mapper by default."""
    library = Path("site-packages", package, name)
    library.parent.mkdir(parents=True)
    library.write_text(source)


def is_each(number: float, line: LineTime) -> bool:
    """Return whether each pass has this many executions, and enough passes were timed. Sums may
    have been halved.
    """
    return line.passes >= LEAST and abs(line.executions / line.passes - number) < 0.2
