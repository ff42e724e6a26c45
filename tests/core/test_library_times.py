"""The time of the library's function through which a program executes a statement."""

from __future__ import annotations

from pathlib import Path

import pytest
from core.library_programs import ITEM, KEPT, Run, Times, recorder

from queryprof.collect.reader import read_profile


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queryprof: Run) -> Times:
    return recorder(tmp_path, monkeypatch, queryprof)


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


def test_a_watch_outlasts_the_turns_of_the_recorder(times: Times) -> None:
    """What is read meanwhile is without its calls: the program's code may yet be seen in them."""
    program = """
        from queryprof.core import _core
        for n in range(600):
            mapper.get(n)
            _core.flush()
        """
    one = times(program)[ITEM]
    assert (one.calls, one.executions) == (KEPT, KEPT)


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
    """Four take turns, in the middle of each call: those of one are timed, with its own
    executions.
    """
    program = """
        import threading
        turns = [threading.Semaphore(not number) for number in range(4)]
        def run(number):
            own, others = turns[number].acquire, turns[(number + 1) % 4].release
            for n in range(600):
                mapper.get_between(n, own, others)
        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        [one.start() for one in threads]
        [one.join() for one in threads]
        """
    one = times(program)[ITEM]
    assert (one.calls, one.executions) == (KEPT, KEPT)


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


@pytest.mark.parametrize("every", [4, 7])
def test_program_code_that_seldom_runs_inside_is_not_counted(times: Times, every: int) -> None:
    program = f"""
        import time
        made, calls = 0, []
        def make(n):
            global made
            start = time.perf_counter_ns()
            while time.perf_counter_ns() - start < 2_000_000:
                pass
            made = time.perf_counter_ns() - start
            return n
        for n in range(900):
            made, start = 0, time.perf_counter_ns()
            mapper.get_for(n, make if n % {every} == 0 else int)
            calls.append(time.perf_counter_ns() - start - made)
        print(max(calls), file=open("bounds", "w"))
        """
    one = times(program)[ITEM]
    assert one.ns / one.calls <= int(Path("bounds").read_text())
    assert one.calls == KEPT


@pytest.mark.parametrize("call", ["get_much(n, make)", "get_deep(900, n, make)"])
def test_what_is_not_looked_at_is_not_known(times: Times, call: str) -> None:
    """The program's code runs behind so many frames of the library, or so deep in it."""
    assert ITEM not in times(f"def make(n): return n\nfor n in range(600): mapper.{call}")


@pytest.mark.parametrize("depth", [40, 60])
def test_frames_of_the_program_around_the_call_do_not_matter(times: Times, depth: int) -> None:
    program = f"""
        def around(left, n):
            return around(left - 1, n) if left else mapper.get(n)
        for n in range(600): around({depth}, n)
        """
    assert times(program)[ITEM].calls == KEPT


def test_of_django_the_function_of_its_database_counts(times: Times, tmp_path: Path) -> None:
    """Not the template around it, which is called once."""
    package = tmp_path / "site-packages" / "django"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "db.py").write_text(
        "import mapper\ndef get(n): return mapper.db.execute('SELECT ?', (n,)).fetchone()"
    )
    (package / "template.py").write_text(
        "from django import db\ndef render(ns): return [db.get(n) for n in ns]"
    )
    one = times("from django import template\ntemplate.render(range(600))")["SELECT ?"]
    assert (one.calls, one.executions) == (KEPT, KEPT)


def test_what_other_threads_execute_meanwhile_is_theirs(times: Times) -> None:
    """During each call of the library another thread executes the same statement."""
    program = """
        import threading
        called, done = threading.Event(), threading.Event()
        other = mapper.sqlite3.connect(":memory:", check_same_thread=False)
        def run():
            for n in range(600):
                called.wait()
                called.clear()
                other.execute("SELECT ?", (n,)).fetchone()
                done.set()
        thread = threading.Thread(target=run)
        thread.start()
        for n in range(600):
            done.clear()
            mapper.get_between(n, called.set, done.wait)
        thread.join()
        """
    one = times(program)[ITEM]
    assert (one.calls, one.executions, one.others) == (KEPT, KEPT, 0)


def test_a_function_that_is_called_once_keeps_no_other_from_being_watched(times: Times) -> None:
    program = """
        import sys, types
        code = "def fill(db):\\n for n in range(1000): db.execute('UPDATE item SET id = id WHERE id = ?', (n,))"
        exec(code, vars(mapper))
        vars(mapper)["fill"](mapper.db)
        for n in range(900): mapper.get(n)
        """
    assert times(program)[ITEM].calls == KEPT


def test_calls_that_work_much_leave_room_for_others(times: Times) -> None:
    """Each evaluates 3,000 frames, of which a watch looks at some."""
    program = """
        for n in range(400): mapper.get_much(n)
        def loop():
            for n in range(600): mapper.get(n)
        loop()
        """
    times(program)
    known = {one.path[0].function: one.calls for one in read_profile("t.qprof").library_times}
    assert known["loop"] == KEPT
