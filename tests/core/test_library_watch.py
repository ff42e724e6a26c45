"""While a library's function is watched, the program is what it is without us: with little memory,
small stacks, greenlets, other tools, deep recursion.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from core.library_programs import ITEM, Run, Times, recorder


@pytest.fixture
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queryprof: Run) -> Times:
    return recorder(tmp_path, monkeypatch, queryprof)


@pytest.mark.parametrize("room", [8 * 1024, 4 * 1024 * 1024])
def test_a_forked_child_without_memory_goes_on(times: Times, room: int) -> None:
    """It is not recorded; what the parent has timed is not its own."""
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
    assert times(program)[ITEM].calls > 0


@pytest.mark.parametrize(
    ("stack", "is_timed"), [(64, False), (80, False), (512, False), (2048, True)]
)
def test_threads_with_small_stacks_are_left_alone(times: Times, stack: int, is_timed: bool) -> None:
    """300 frames fit in 64 kB, as they do without us: evaluated by us each would take some hundred
    bytes.
    """
    program = f"""
        import os, threading
        def run():
            for n in range(600):
                mapper.get(n)
                mapper.dig(300, int)
        least = os.sysconf("SC_THREAD_STACK_MIN")  # 128 kB on aarch64
        threading.stack_size(max({stack} * 1024, least))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        """
    assert (ITEM in times(program)) == is_timed


def test_the_programs_recursion_takes_no_stack(times: Times) -> None:
    """20,000 frames inside a call of the library, which is timed all the same."""
    program = """
        import sys
        sys.setrecursionlimit(30_000)
        def deep(left):
            return deep(left - 1) if left else 0
        for n in range(300):
            mapper.get_for(n, lambda number: deep(20_000))
        """
    assert times(program)[ITEM].calls > 0


def test_another_threads_small_stack(times: Times) -> None:
    """It runs while the main thread's function is watched."""
    program = """
        import os, threading
        def deep(left):
            return deep(left - 1) if left else 0
        done = threading.Event()
        def run():
            while not done.is_set():
                deep(300)
        threading.stack_size(max(64 * 1024, os.sysconf("SC_THREAD_STACK_MIN")))
        thread = threading.Thread(target=run)
        thread.start()
        for n in range(600):
            mapper.get(n)
        done.set()
        thread.join()
        """
    times(program)


GREENLETS = """
import sys, greenlet
sys.setrecursionlimit(200_000)
main = greenlet.getcurrent()
def deep():
    mapper.dig(20_000, main.switch)
for n in range(60):
    one = greenlet.greenlet(deep)
    while not one.dead:
        mapper.get_between(n, one.switch, int)
"""


def test_greenlets_that_recurse_deeply(times: Times) -> None:
    pytest.importorskip("greenlet")
    times(GREENLETS)


MIXED = """
import greenlet
def work(number):
    for n in range(100):
        mapper.get_between(n, int, main.switch)
main = greenlet.getcurrent()
many = [greenlet.greenlet(work) for _ in range(4)]
for one in many:
    one.switch(0)
while any(not one.dead for one in many):
    for one in many:
        one.switch(0)
"""


def test_calls_that_other_greenlets_share_do_not_count(times: Times) -> None:
    pytest.importorskip("greenlet")
    one = times(MIXED + "for n in range(900): mapper.get(n)").get(ITEM)
    assert one is not None
    assert one.executions == one.calls


TOOL = """
import ctypes, sys
api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = ctypes.c_void_p
interpreter = api.PyInterpreterState_Get()
get, put = api._PyInterpreterState_GetEvalFrameFunc, api._PyInterpreterState_SetEvalFrameFunc
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
put.restype, put.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
own = get(interpreter)
kept = set()
for n in range(300):
    mapper.get(n)
    kept.add(get(interpreter))
(ours,) = kept - {own}
put(interpreter, ours)  # a tool puts back what was there when it began
sys.setrecursionlimit(200_000)
def deep(left):
    return deep(left - 1) if left else 0
assert deep(100_000) == 0
assert get(interpreter) == own
"""


def test_a_tool_that_puts_back_our_function(times: Times) -> None:
    """It removes itself at the next frame."""
    times(TOOL)


RECURSION = """
import json
def works(depth):
    try:
        json.loads("[" * depth + "]" * depth)
    except RecursionError:
        return False
    return True
def down(left, depth):
    return down(left - 1, depth) if left else works(depth)
low, high = 1, 100_000
while high - low > 1:
    middle = (low + high) // 2
    low, high = (middle, high) if down(40, middle) else (low, middle)
for n in range(400):
    assert mapper.get_for(n, lambda number: down(40, low - 10))
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="counts bytes of the stack, not calls")
def test_recursion_in_c_has_its_whole_limit(times: Times) -> None:
    """Some frames are between."""
    assert times(RECURSION)[ITEM].calls > 0
