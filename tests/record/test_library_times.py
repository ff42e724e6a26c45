"""The time of the library's function through which a program executes a statement.

Each program is recorded in a process of its own, with a library beside it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryprof.model import LibraryTime
from queryprof.trace.reader import read_profile

Run = Callable[..., CompletedProcess[str]]

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


work = []
'''

KEPT = 60
"""Calls of a watch that count: 64 less the longest of each 16."""

ITEM = "SELECT id FROM item WHERE id = ?"


@pytest.fixture
def times(
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


Times = Callable[[str], dict[str, LibraryTime]]


def test_calls_of_the_library_are_timed(times: Times) -> None:
    one = times("for n in range(600): mapper.get(n)")[ITEM]
    assert (one.calls, one.executions, one.others) == (KEPT, KEPT, 0)
    assert one.ns > 0
    assert [frame.function for frame in one.path] == ["<module>"]


def test_calls_that_raise_are_timed_too(times: Times) -> None:
    program = """
        for n in range(600):
            try:
                mapper.get_or_raise(n)
            except LookupError:
                pass
        """
    assert times(program)[ITEM].calls == KEPT


def test_the_programs_own_code_inside_is_not_counted(times: Times) -> None:
    """The program takes 10 times as long as the library, which calls it."""
    program = """
        import time
        made, calls = [], []
        def make(n):
            start = time.perf_counter_ns()
            while time.perf_counter_ns() - start < 2_000_000:
                pass
            made.append(time.perf_counter_ns() - start)
            return n
        for n in range(300):
            start = time.perf_counter_ns()
            mapper.get_for(n, make)
            calls.append(time.perf_counter_ns() - start)
        own = sorted(a - b for a, b in zip(calls, made))
        print(min(mapper.work), own[-1], file=open("bounds", "w"))
        """
    one = times(program)[ITEM]
    least, most = map(int, Path("bounds").read_text().split())
    assert least <= one.ns / one.calls <= most
    assert one.calls == KEPT


def test_the_outermost_call_counts(times: Times) -> None:
    one = times("for n in range(600): mapper.nested(3, n)")[ITEM]
    assert (one.calls, one.executions) == (KEPT, KEPT)


def test_executions_in_one_call_are_counted(times: Times) -> None:
    """Of the statement, and of others."""
    twice = times("for n in range(600): mapper.get_twice(n)")[ITEM]
    assert (twice.calls, twice.executions, twice.others) == (KEPT, 2 * KEPT, 0)


def test_other_statements_of_the_call_are_known_by_it(times: Times) -> None:
    found = times("for n in range(600): mapper.get_and_count(n)")
    one, count = found[ITEM], found["SELECT count(*) FROM item"]
    assert (one.calls, one.executions, one.others) == (KEPT, KEPT, KEPT)
    assert (count.calls, count.executions, count.others, count.ns) == (KEPT, KEPT, KEPT, one.ns)


def test_of_a_generator_the_function_inside_counts(times: Times) -> None:
    """The generator's own call would hold what the program does with each item."""
    one = times("for found in mapper.all_of(range(600)): pass")[ITEM]
    assert (one.calls, one.executions) == (KEPT, KEPT)


def test_a_program_that_calls_the_driver_has_none(times: Times) -> None:
    program = 'for n in range(600): mapper.db.execute("SELECT id FROM item WHERE id = ?", (n,))'
    assert times(program) == {}


def test_what_is_known_when_the_program_ends_counts(times: Times) -> None:
    """Without the last calls of a loop that is shorter than a watch: some of them, or none."""
    one = times("for n in range(64): mapper.get(n)").get(ITEM)
    assert one is None or 0 < one.calls <= 60


def test_each_thread_is_watched_for_itself(times: Times) -> None:
    program = """
        import threading
        def run():
            for n in range(600):
                mapper.get(n)
        threads = [threading.Thread(target=run) for _ in range(4)]
        [one.start() for one in threads]
        [one.join() for one in threads]
        """
    assert times(program)[ITEM].executions >= KEPT


def test_another_recording_in_a_call_is_another_watch(times: Times) -> None:
    """A call that a recording began in, or ended in, is not timed."""
    program = """
        import queryprof
        def renew(number):
            if number % 50 == 0:
                queryprof.uninstall()
                queryprof.install("other.qprof")
            return number
        for n in range(600):
            mapper.get_for(n, renew)
        """
    times(program)
    assert Path("other.qprof").exists()


def test_a_forked_child_is_watched_for_itself(times: Times) -> None:
    program = """
        import os
        def fork(number):
            if number == 100:
                child = os.fork()
                if child:
                    assert os.waitpid(child, 0)[1] == 0
            return number
        for n in range(600):
            mapper.get_for(n, fork)
        """
    assert times(program)[ITEM].calls in (KEPT, 2 * KEPT)


DEEP = """
import sys, threading
sys.setrecursionlimit(5000)
def deep(left):
    return deep(left - 1) if left else 0
def run():
    for n in range(2000):
        mapper.get(n % 1000)
        if n % 100 == 0:
            assert deep(900) == 0
threading.stack_size(256 * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_frames_need_little_of_the_c_stack(times: Times) -> None:
    """900 frames fit in a thread with 256 kB, as they do without us: each would take some hundred bytes."""
    assert times(DEEP)[ITEM].executions > 0


def test_a_function_that_is_called_once_keeps_no_other_from_being_watched(times: Times) -> None:
    program = """
        import sys, types
        code = "def fill(db):\\n for n in range(1000): db.execute('UPDATE item SET id = id WHERE id = ?', (n,))"
        exec(code, vars(mapper))
        vars(mapper)["fill"](mapper.db)
        for n in range(900): mapper.get(n)
        """
    assert times(program)[ITEM].calls == KEPT
