"""Call paths: both ways of reading frames agree, for every kind of frame."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from _thread import allocate_lock, start_new_thread
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import queryprof
from queryprof.core import _core

CONNECTION = sqlite3.connect(":memory:", check_same_thread=False)


def ask(number: int = 0) -> None:
    CONNECTION.execute("SELECT ?", (number,)).fetchone()


def generator() -> Iterator[int]:
    for number in range(3):
        ask(number)
        yield number


async def coroutine() -> None:
    async for _ in asynchronous():
        ask()
        await asyncio.sleep(0)


async def asynchronous() -> AsyncIterator[int]:
    for number in range(2):
        ask(number)
        yield number


class Asker:
    def __init__(self) -> None:
        ask()

    def __del__(self) -> None:
        ask()

    @property
    def answer(self) -> int:
        ask()
        return 1

    def __lt__(self, other: object) -> bool:
        ask()
        return False


def recursive(depth: int) -> None:
    if depth:
        recursive(depth - 1)
    else:
        ask()


def work() -> None:
    """Frames of every kind: entered by Python, by C, suspended, nested, recursive."""
    for _ in generator():
        ask()
    asyncio.run(coroutine())
    assert Asker().answer
    sorted([Asker(), Asker()])  # type: ignore[type-var]
    list(map(ask, range(3)))
    functools.reduce(lambda _, number: ask(number), range(3))
    [ask(number) for number in range(3)]
    exec("ask(); ask()", {"ask": ask})
    eval("ask()", {"ask": ask})
    recursive(5)
    CONNECTION.create_function("asks", 0, lambda: ask() or 1)
    CONNECTION.execute("SELECT asks()").fetchone()
    try:
        CONNECTION.execute("SELECT nothing")
    except sqlite3.OperationalError:
        ask()


Place = tuple[str, int]


def paths(public: bool) -> Counter[tuple[str, str, tuple[Place, ...]]]:
    with queryprof.profile() as recording:
        if public:
            _core.use_public_frames()
        assert _core.frames_are_direct() != public
        work()
        work()
    return Counter(
        {
            (a.statement, a.operation, tuple((f.function, f.line) for f in a.path)): a.count
            for a in recording.profile.aggregates
        }
    )


def test_both_ways_of_reading_frames_agree() -> None:
    """The interpreter's own records have the same frames as the public functions."""
    public, either = (paths(public=way) for way in (True, False))  # from one line
    functions = Counter[tuple[str, ...]]()
    for (_, _, path), count in public.items():
        functions[tuple(function for function, _ in path)] += count
    recursive = [
        n for path, n in functions.items() if path[:3] == ("ask", "recursive", "recursive")
    ]
    assert sum(recursive) == 2 * 2, "an execute and a fetch, twice"
    assert either == public


def test_a_function_that_ends_a_stack_may_stand_inside_another() -> None:
    """The path of a native thread's outermost function is not reused where the function has a
    caller.
    """
    done = allocate_lock()
    done.acquire()

    def alone(number: int) -> None:
        ask(number)
        done.release()

    with queryprof.profile() as recording:
        start_new_thread(alone, (0,))
        done.acquire()
        alone(0)
    paths = {
        tuple(frame.function.rpartition(".")[2] for frame in a.path)
        for a in recording.profile.aggregates
        if a.operation == "execute"
    }
    assert paths == {
        ("ask", "alone"),
        ("ask", "alone", "test_a_function_that_ends_a_stack_may_stand_inside_another"),
    }
