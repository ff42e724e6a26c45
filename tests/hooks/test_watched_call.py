"""A watched call returns, raises and keeps alive the same as without the watcher."""

from __future__ import annotations

import contextlib
import sys
import weakref
from typing import Any

import pytest

from queryprof.core import _core


class LateError(Exception):
    pass


@pytest.mark.parametrize("when", [False, True], ids=["before", "after"])
def test_what_the_watcher_raises_is_raised(when: bool) -> None:
    """A signal handler may run in the watcher. Its exception belongs to the program."""
    called: list[object] = []

    def watch(is_over: bool, *_: object) -> None:
        if is_over is when:
            raise LateError

    wrapped: Any = _core.watched_call_wrapper(called.append, watch)
    with pytest.raises(LateError):
        wrapped(1)
    assert called == [1] * when


@pytest.mark.parametrize("raises", [False, True])
def test_what_the_watcher_returns_lives_as_long_as_the_call(raises: bool) -> None:
    alive: list[bool] = []

    class Token:
        pass

    def watch(is_over: bool, *_: object) -> Token | None:
        nonlocal last
        if is_over:
            alive.append(last() is not None)
            if raises:
                raise LateError
            return None
        token = Token()
        last = weakref.ref(token)
        return token

    last: Any = None
    wrapped: Any = _core.watched_call_wrapper(lambda: alive.append(last() is not None), watch)
    with pytest.raises(LateError) if raises else contextlib.nullcontext():
        wrapped()
    assert alive == [True, False]


def test_a_watcher_sees_arguments_and_result_and_is_not_seen() -> None:
    seen: list[object] = []
    wrapped: Any = _core.watched_call_wrapper(divmod, lambda *call: seen.append(call))
    traced: list[str] = []
    sys.setprofile(lambda frame, *_: traced.append(frame.f_code.co_name))
    try:
        assert wrapped(7, 2) == (3, 1)
    finally:
        sys.setprofile(None)
    assert "<lambda>" not in traced
    with pytest.raises(ZeroDivisionError):
        wrapped(7, 0)
    named: Any = _core.watched_call_wrapper(dict, lambda *call: seen.append(call))
    assert named(connection=5, query=6) == {"connection": 5, "query": 6}
    assert seen == [
        (False, 7, 2, None, None, None),
        (True, 7, 2, None, None, (3, 1)),
        (False, 7, 0, None, None, None),
        (True, 7, 0, None, None, None),
        (False, None, None, 6, 5, None),
        (True, None, None, 6, 5, {"connection": 5, "query": 6}),
    ]
