"""The time of the program's line that executes a statement through a library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from core.line_programs import ITEM, LEAST, Run, Times, is_each, recorder, write_library

from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python 3.11 reports no lines of one function"
)

SLOW_NS = 200_000
"""What `mapper.get_slowly` takes after the query."""


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queryprof: Run) -> Times:
    return recorder(tmp_path, monkeypatch, queryprof)


def test_passes_of_a_line_are_timed(times: Times) -> None:
    one = times("for n in range(600): mapper.get_slowly(n)")[ITEM]
    assert is_each(1, one)
    assert one.others == 0
    assert one.ns >= one.passes * SLOW_NS
    assert [frame.function for frame in one.path] == ["<module>"]


LOOPS = {
    "for": "for n in range(600):\n    mapper.get(n)",
    "while": "n = 600\nwhile n:\n    n -= 1\n    mapper.get(n)",
    "list": "[mapper.get(n) for n in range(600)]",
    "generator expression": "sum(mapper.get(n) for n in range(600))",
    "function": "def one(n):\n    return mapper.get(n)\nfor n in range(600): one(n)",
    "generator": "def all():\n    for n in range(600):\n        yield mapper.get(n)\nsum(all())",
    "several lines": "for n in range(600):\n    mapper.get(\n        int(\n            n\n        )\n    )",
    "library's generator": "for found in mapper.all_of(range(600)):\n    pass",
    "recursion": "def one(n, depth):\n    return depth and one(n, depth - 1) or mapper.get(n)\n"
    "for n in range(600): one(n, 20)",
    "exceptions": "for n in range(1200):\n    try:\n        mapper.get_or_raise(n % 1000)\n"
    "    except LookupError:\n        pass",
    "exceptions that leave the function": "def one(n):\n    mapper.get_or_raise(n)\n"
    "for n in range(1200):\n    try:\n        one(n % 1000)\n    except LookupError:\n        pass",
    "coroutine": "import asyncio\nasync def one(n):\n    return mapper.get(n)\n"
    "async def all():\n    for n in range(600):\n        await one(n)\nasyncio.run(all())",
    "nested": "for n in range(600): mapper.nested(3, n)",
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.repeats
def test_each_kind_of_loop(times: Times, loop: str) -> None:
    times(LOOPS[loop])
    found = [one for one in read_profile("t.qprof").line_times if one.statement == ITEM]
    assert sum(one.passes for one in found) == sum(one.executions for one in found) >= LEAST
    assert sum(one.others for one in found) == 0


def test_rows_that_are_made_later_belong_to_the_pass(times: Times) -> None:
    """The query is executed when the loop begins; each pass of its line makes an object."""
    write_library(
        "rows.py",
        "import time\n"
        "def objects(db):\n"
        '    for id, in db.execute("SELECT id FROM item LIMIT 20"):\n'
        "        start = time.perf_counter_ns()\n"
        "        while time.perf_counter_ns() - start < 50_000: pass\n"
        "        yield id\n",
    )
    program = """
        import mapper.rows
        for n in range(300):
            for found in mapper.rows.objects(mapper.db):
                pass
        """
    one = times(program)["SELECT id FROM item LIMIT ?"]
    assert one.passes == one.executions
    assert one.ns >= one.passes * 20 * 50_000


def test_a_statement_that_is_executed_once_is_timed_from_its_execution(times: Times) -> None:
    one = times("mapper.get_slowly(1)")[ITEM]
    assert (one.passes, one.executions) == (1, 1)
    assert one.ns >= SLOW_NS


def test_the_longest_pass_that_is_left_out_is_kept_beside_the_others(times: Times) -> None:
    """The first pass makes objects of 1,000 rows, and each other pass makes one."""
    write_library(
        "rows.py",
        "import time\n"
        "def objects(db, most):\n"
        '    rows = db.execute("SELECT id FROM item LIMIT ?", (most,)).fetchall()\n'
        "    start = time.perf_counter_ns()\n"
        "    while time.perf_counter_ns() - start < len(rows) * 50_000: pass\n"
        "    return rows\n",
    )
    program = """
        import mapper.rows
        for n in range(300):
            mapper.rows.objects(mapper.db, 1 if n else 1000)
        """
    one = times(program)["SELECT id FROM item LIMIT ?"]
    assert one.left_out_ns >= 1000 * 50_000
    assert one.passes == one.executions


def test_commits_are_timed(times: Times) -> None:
    program = """
        import mapper.commits
        for n in range(600): mapper.commits.save(mapper.db, n)
        """
    library = Path("site-packages/mapper/commits.py")
    library.parent.mkdir(parents=True)
    library.write_text(
        "def save(db, n):\n"
        "    db.execute('UPDATE item SET id = id WHERE id = ?', (n,))\n"
        "    db.commit()\n"
    )
    found = times(program)
    commit, update = found["COMMIT"], found["UPDATE item SET id = id WHERE id = ?"]
    assert is_each(1, commit)
    assert is_each(1, update)


def test_executions_in_one_pass_are_counted(times: Times) -> None:
    twice = times("for n in range(600): mapper.get_twice(n)")[ITEM]
    assert is_each(2, twice)
    assert twice.others == 0


def test_other_statements_of_the_pass_are_counted(times: Times) -> None:
    found = times("for n in range(600): mapper.get_and_count(n)")
    one, count = found[ITEM], found["SELECT count(*) FROM item"]
    for known in (one, count):
        assert is_each(1, known)
        assert abs(known.others - known.executions) < 2


def test_the_time_of_a_suspended_coroutine_is_not_the_lines(times: Times) -> None:
    """Two tasks take turns: each awaits the other's long work in its line."""
    program = """
        import asyncio, time
        async def work():
            for _ in range(300):
                start = time.perf_counter_ns()
                while time.perf_counter_ns() - start < 2_000_000:
                    pass
                await asyncio.sleep(0)
        async def queries():
            for n in range(300):
                await mapper.get_later(n, asyncio.sleep(0))
        async def both():
            await asyncio.gather(work(), queries())
        asyncio.run(both())
        """
    one = times(program)[ITEM]
    assert is_each(1, one)
    assert one.ns < one.passes * 2_000_000


def test_lines_with_few_executions_take_turns(times: Times) -> None:
    """Otherwise a line that is executed 30 times would be timed in its first pass only. The pauses
    give the watches time that they may cost.
    """
    times(
        """
        import time
        for n in range(30):
            mapper.get(n)
            mapper.get(n)
            mapper.get(n)
            time.sleep(0.02)
        """
    )
    lines = [one for one in read_profile("t.qprof").line_times if one.path[0].line >= 5]
    assert len(lines) == 3
    assert min(one.passes for one in lines) >= 2


def test_a_program_that_calls_the_driver_has_none(times: Times) -> None:
    program = 'for n in range(600): mapper.db.execute("SELECT id FROM item WHERE id = ?", (n,))'
    assert ITEM not in times(program)


def test_a_watch_outlasts_the_turns_of_the_recorder(times: Times) -> None:
    program = """
        from queryprof.core import _core
        for n in range(600):
            mapper.get(n)
            _core.flush()
        """
    one = times(program)[ITEM]
    assert is_each(1, one)


def test_each_thread_is_watched_for_itself(times: Times) -> None:
    """Four take turns in the middle of each call: the passes of one are timed, with its own
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
    assert is_each(1, one)


def test_what_other_threads_execute_meanwhile_is_theirs(times: Times) -> None:
    """During each pass another thread executes the same statement."""
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
    assert is_each(1, one)
    assert one.others == 0


def test_a_line_that_is_passed_once_keeps_no_other_from_being_watched(times: Times) -> None:
    program = """
        def once():
            mapper.get(1)
            mapper.get_and_count(2)
        def loop():
            for n in range(900): mapper.get(n)
        once()
        loop()
        """
    times(program)
    known = {one.path[0].function: one.passes for one in read_profile("t.qprof").line_times}
    assert known["loop"] >= LEAST


def test_later_passes_count_more(times: Times) -> None:
    """The second half of the passes executes the statement twice."""
    program = """
        for n in range(2000):
            (mapper.get if n < 1000 else mapper.get_twice)(n % 999)
        """
    one = times(program)[ITEM]
    assert one.executions / one.passes > 1.2


def test_a_loop_of_a_library_is_timed_in_the_library(times: Times) -> None:
    """By the outermost function of the package nearest to the driver."""
    library = Path("site-packages/template/__init__.py")
    library.parent.mkdir(parents=True)
    library.write_text(
        "import mapper\ndef render(numbers):\n    return sum(mapper.get_slowly(n) for n in numbers)\n"
    )
    one = times("import template\ntemplate.render(range(600))")[ITEM]
    assert is_each(1, one)
    assert one.ns >= one.passes * SLOW_NS


def test_a_line_that_awaits_another_thread_is_timed(times: Times) -> None:
    """Its executions are in that thread, and belong to the pass that submitted them."""
    program = """
        import asyncio
        import mapper.threads
        async def main():
            for n in range(600):
                await mapper.threads.get(n)
        asyncio.run(main())
        """
    library = Path("site-packages/mapper/threads.py")
    library.parent.mkdir(parents=True)
    library.write_text(
        "import asyncio\nimport mapper\n"
        "async def get(number):\n"
        "    found = await asyncio.get_running_loop().run_in_executor(None, mapper.fetch, number)\n"
        "    start = mapper.time.perf_counter_ns()\n"
        "    while mapper.time.perf_counter_ns() - start < 200_000: pass\n"
        "    return found\n"
    )
    one = times(program)[ITEM]
    assert is_each(1, one)
    assert one.ns >= one.passes * SLOW_NS


def test_an_inner_line_has_its_own_time(times: Times) -> None:
    """Queries in an inner function of the program do not count for the outer line."""
    program = """
        def inner(n):
            return mapper.get(n)
        def outer(n):
            start = mapper.time.perf_counter_ns()
            while mapper.time.perf_counter_ns() - start < 2_000_000: pass
            return mapper.get_for(n, inner)
        for n in range(300): outer(n)
        """
    times(program)
    known = {one.path[0].function: one for one in read_profile("t.qprof").line_times}
    assert known["inner"].ns / known["inner"].passes < 2_000_000
    assert known["inner"].executions == known["inner"].passes
    assert known["outer"].others >= known["outer"].passes - 1


def test_watches_cost_no_more_than_they_may(times: Times) -> None:
    """Here each takes 6 ms of CPU time at its begin and 6 at its end, in an audit hook: the first one
    uses up what is free, and others have to wait for 2 s each.
    """
    program = """
        import sys, time
        changes = 0
        def hook(event, args):
            global changes
            if event == "sys.monitoring.register_callback":
                changes += 1
                start = time.thread_time_ns()
                while time.thread_time_ns() - start < 1_000_000:
                    pass
        source = "\\n".join(f"mapper.get({n} % 9)" for n in range(500))
        open("many.py", "w").write("import mapper\\n" + source)
        start = time.monotonic()
        sys.addaudithook(hook)
        import many
        print(changes, time.monotonic() - start, file=open("watches", "w"))
        """
    times(program)
    changes, elapsed_s = map(float, Path("watches").read_text().split())
    assert 1 <= changes / 6 <= 4 + elapsed_s


def test_another_recording_in_a_pass_is_another_watch(times: Times) -> None:
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
    assert times(program)[ITEM].passes >= LEAST
