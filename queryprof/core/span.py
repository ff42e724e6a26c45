"""Spans: named pieces of the program's work, which executions are counted under.

The running span is a context variable, so that it is right across tasks and across threads that
run in a copy of the context (asyncio.to_thread).
"""

from __future__ import annotations

from contextvars import ContextVar

from queryprof.core import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from typing import Any, Self, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

_running: ContextVar[int] = ContextVar("queryprof.span")


class span:
    """A named piece of work: a context manager, and a decorator of functions and coroutines.

    The innermost span counts. While nothing is recorded, a span does nothing.

        with queryprof.span("checkout"): ...

        @queryprof.span("import")
        async def load(): ...
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a span needs a name, not {name!r}")
        self.name = name
        self._tokens: list[Token[int]] = []

    def __enter__(self) -> Self:
        number = 0
        if _core.is_on():
            _core.set_span_variable(_running)
            number = _core.span_number(self.name)
        self._tokens.append(_running.set(number))
        return self

    def __exit__(self, *exc_info: object) -> None:
        _running.reset(self._tokens.pop())

    def __call__(self, function: Function) -> Function:
        import functools
        import inspect

        name = self.name
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                with span(name):
                    return await function(*args, **kwargs)

            return coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with span(name):
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]
