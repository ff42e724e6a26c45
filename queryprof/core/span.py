"""Spans: named pieces of the program's work, with the queries of each.

The running span is a context variable, so that it is right across tasks and across threads that
run in a copy of the context (asyncio.to_thread).
"""

from __future__ import annotations

from contextvars import ContextVar

from queryprof.core import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Token
    from typing import Any, Self, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])
    Awaiting = TypeVar("Awaiting", bound=Coroutine[Any, Any, Any])

_running: ContextVar[int] = ContextVar("queryprof.span")


class span:
    """A named piece of work: a context manager, and a decorator of functions and coroutines.

    Its wall time, its CPU time and its queries are measured; an execution is listed under the
    innermost span. The CPU time is that of the thread; of a `with` block in a coroutine it is
    unknown when the block awaits, of a decorated coroutine it is known. While nothing is recorded,
    a span does nothing.

        with queryprof.span("checkout"): ...

        @queryprof.span("import")
        async def load(): ...
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a span needs a name, not {name!r}")
        self.name = name
        self._begun: list[tuple[int, Token[int]]] = []

    def __enter__(self) -> Self:
        number = begin(self.name)
        self._begun.append((number, _running.set(number)))
        return self

    def __exit__(self, kind: object, *exc_info: object) -> None:
        number, token = self._begun.pop()
        _core.span_end(number, kind is not None)
        _running.reset(token)

    def __call__(self, function: Function) -> Function:
        import functools
        import inspect

        name = self.name
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                with span(name) as running:
                    return await running.watch(function(*args, **kwargs))

            return coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with span(name):
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    def watch(self, coroutine: Awaiting) -> Awaiting:
        """Wraps a coroutine that is all of the span's work: its CPU time is the span's."""
        return _core.span_watch(self._begun[-1][0], coroutine)

    def set_status(self, status: int) -> None:
        """Notes how a request ended: its HTTP status."""
        _core.span_status(self._begun[-1][0], status)

    def figures(self) -> tuple[int, int]:
        """How many queries it has made so far, and the nanoseconds in the driver."""
        return _core.span_figures(self._begun[-1][0])


def begin(name: str) -> int:
    """Begins a span whose number the caller keeps: the running span's value; 0 while recording is
    off.
    """
    if not _core.is_on():
        return 0
    _core.set_span_variable(_running)
    return _core.span_begin(name)
