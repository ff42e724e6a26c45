"""During and after the watch of a line, the program and other tools work as without queryprof."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from core.line_programs import ITEM, LEAST, Run, Times, recorder

from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python 3.11 reports no lines of one function"
)


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queryprof: Run) -> Times:
    return recorder(tmp_path, monkeypatch, queryprof)


def test_nothing_is_left_after_a_watch(times: Times) -> None:
    program = """
        import sys
        def loop():
            for n in range(600): mapper.get(n)
            while sys.monitoring.get_tool(5):  # the last watch may have begun just now
                mapper.db.execute("SELECT 1")
        loop()
        assert [sys.monitoring.get_tool(n) for n in range(6)] == [None] * 6
        sys.monitoring.use_tool_id(5, "mine")
        assert sys.monitoring.get_local_events(5, loop.__code__) == 0
        assert sys.monitoring.register_callback(5, sys.monitoring.events.LINE, None) is None
        """
    assert times(program)[ITEM].passes >= LEAST


@pytest.mark.parametrize(("taken", "is_timed"), [((), True), ((1,), False), ((4, 5), False)])
@pytest.mark.repeats
def test_numbers_of_other_tools_are_left_alone(
    times: Times, taken: tuple[int, ...], is_timed: bool
) -> None:
    """If another tool is active, no line is timed, and the tool gets its events."""
    program = f"""
        import sys
        seen = []
        def loop():
            for n in range(600):
                mapper.get(n)
        for n in range(2000):  # ends the watch of the line with the import
            mapper.db.execute("SELECT 1")
        for tool in {taken}:
            sys.monitoring.use_tool_id(tool, "other")
            sys.monitoring.register_callback(tool, sys.monitoring.events.LINE, lambda *_: seen.append(1))
            sys.monitoring.set_local_events(tool, loop.__code__, sys.monitoring.events.LINE)
        loop()
        assert len(seen) >= 600 * len({taken}), len(seen)
        assert [sys.monitoring.get_tool(n) for n in {taken}] == ["other"] * len({taken})
        """
    assert (ITEM in times(program)) == is_timed


def test_a_program_that_takes_our_number_away(times: Times) -> None:
    """The watch ends, and the program owns the number."""
    program = """
        import sys
        taken = []
        def take(number):
            if not taken and sys.monitoring.get_tool(5):
                sys.monitoring.free_tool_id(5)
                sys.monitoring.use_tool_id(5, "mine")
                taken.append(number)
            return number
        for n in range(600): mapper.get_for(n, take)
        for n in range(600): mapper.get(n)
        assert taken
        assert sys.monitoring.get_tool(5) == "mine"
        """
    times(program)


@pytest.mark.parametrize("tracer", ["sys.settrace(trace)", "sys.setprofile(trace)"])
@pytest.mark.repeats
def test_a_debugger_sees_what_it_sees_without_us(times: Times, tracer: str) -> None:
    program = f"""
        import sys
        seen = []
        def trace(frame, event, argument):
            if frame.f_code is loop.__code__:
                seen.append((event, frame.f_lineno))
            return trace
        def loop():
            for n in range(600):
                mapper.get(n)
        {tracer}
        loop()
        sys.settrace(None)
        sys.setprofile(None)
        print(seen, file=open("seen", "a"))
        """
    times(program)
    recorded = Path("seen").read_text()
    subprocess.run([sys.executable, "app.py"], check=True)
    assert Path("seen").read_text() == 2 * recorded


@pytest.mark.parametrize("core", ["ctrace", "sysmon"])
def test_coverage_counts_the_same_lines(times: Times, core: str) -> None:
    coverage = pytest.importorskip("coverage")
    assert coverage
    program = f"""
        import os
        os.environ["COVERAGE_CORE"] = {core!r}
        import coverage
        measured = coverage.Coverage(data_file=None, include=["*/covered.py"])
        open("covered.py", "w").write(
            "import mapper\\n"
            "def loop():\\n"
            "    for n in range(600):\\n"
            "        mapper.get(n)\\n"
            "    if n > 599:\\n"
            "        n = 1\\n"
            "    return n\\n"
        )
        measured.start()
        import covered
        covered.loop()
        measured.stop()
        lines = measured.get_data().lines(os.path.abspath("covered.py"))
        assert sorted(lines) == [1, 2, 3, 4, 5, 7], lines
        """
    times(program)
    assert all(one.count for one in read_profile("t.qprof").aggregates)  # none of coverage's own


def test_audit_hooks_that_raise_end_the_watch_alone(times: Times) -> None:
    program = """
        import sys
        def hook(event, args):
            if event.startswith("sys.monitoring"):
                raise RuntimeError(event)
        sys.addaudithook(hook)
        for n in range(600): mapper.get(n)
        """
    assert ITEM not in times(program)


@pytest.mark.parametrize("calls", [1, 3, 6, 7, 9, 12])
@pytest.mark.repeats
def test_an_audit_hook_that_ends_the_recording(times: Times, calls: int) -> None:
    """The recording ends when a watch begins (6 calls), or when it ends (6 more)."""
    program = f"""
        import sys
        import queryprof
        left = [{calls}]
        def hook(event, args):
            if event == "sys.monitoring.register_callback":
                left[0] -= 1
                if not left[0]:
                    queryprof.uninstall()
        sys.addaudithook(hook)
        def loop():
            for n in range(600):
                mapper.get(n)
                mapper.get_and_count(n)
        loop()
        assert left[0] <= 0
        assert sys.monitoring.get_tool(5) is None
        assert not sys.monitoring.get_tool(4)
        """
    times(program)


def test_a_watch_in_a_signal_handler(times: Times) -> None:
    """The handler runs the line during a pass of the line."""
    program = """
        import signal
        def one(n):
            mapper.get(n)
        signal.signal(signal.SIGUSR1, lambda number, frame: one(1))
        def interrupted(n):
            signal.raise_signal(signal.SIGUSR1)
            return n
        for n in range(600):
            mapper.get_for(n, interrupted)
            one(n)
        """
    times(program)


def test_passes_that_other_greenlets_share_do_not_count(times: Times) -> None:
    program = """
        import gevent
        def run(first):
            for n in range(first, first + 300):
                mapper.get_between(n, gevent.sleep, gevent.sleep)
        gevent.joinall([gevent.spawn(run, first) for first in (0, 300)])
        for n in range(600): mapper.get(n)
        """
    pytest.importorskip("gevent")
    found = times(program)
    assert found[ITEM].executions == found[ITEM].passes


@pytest.mark.parametrize("room", [8 * 1024, 4 * 1024 * 1024])
@pytest.mark.repeats
def test_a_forked_child_without_memory_goes_on(times: Times, room: int) -> None:
    """The child is not recorded, and the parent's times do not count for it."""
    program = f"""
        import os, resource
        def fork(number):
            if number == 100:
                limit = resource.getrlimit(resource.RLIMIT_AS)
                used = int(open("/proc/self/statm").read().split()[0]) * 4096
                resource.setrlimit(resource.RLIMIT_AS, (used + {room}, limit[1]))
                child = os.fork()
                if child == 0:
                    os._exit(7)
                resource.setrlimit(resource.RLIMIT_AS, limit)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            return number
        for n in range(300):
            mapper.get_for(n, fork)
        """
    assert times(program)[ITEM].passes > 0


def test_a_thread_that_ended_in_a_line_by_an_exception(times: Times) -> None:
    """The next thread executes a statement. Its memory would show reads of freed memory."""
    program = """
        import os, sys, threading
        if "PYTHONMALLOC" not in os.environ:
            os.environ["PYTHONMALLOC"] = "debug"
            os.execv(sys.executable, [sys.executable, __file__])
        def line(n):
            mapper.get_or_raise(n)
        def fails():
            try:
                line(1)
            except LookupError:
                pass
        def waits():
            failed.wait()
            mapper.get(2)
        for n in range(300):
            failed = threading.Event()
            waiting, failing = threading.Thread(target=waits), threading.Thread(target=fails)
            waiting.start()
            failing.start()
            failing.join()
            failed.set()
            waiting.join()
        """
    times(program)


def test_events_of_a_loop_end_the_watch(times: Times) -> None:
    """Jumps are the only events of a comprehension."""
    program = """
        import sys
        def loop():
            mapper.get(1)
            [0 for _ in range(100_000)]
            return sys.monitoring.get_tool(5)
        for n in range(100): mapper.db.execute("SELECT 1")
        assert [loop() for _ in range(200)] == [None] * 200
        """
    times(program)


def test_a_large_function_is_not_watched(times: Times) -> None:
    """Adding the events would take too long."""
    program = """
        body = "    n = 1\\n" * 30_000 + "    for n in range(300): mapper.get(n)"
        open("large.py", "w").write("import mapper\\ndef large():\\n" + body)
        import large
        large.large()
        """
    assert ITEM not in times(program)
