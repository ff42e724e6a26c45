"""Spans: named parts of the program's work, such as requests, with their queries.

A context variable holds the running span. The span is therefore correct in each task, and in
threads that run in a copy of the context (asyncio.to_thread).
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

MAX_STATUS = 1_000_000


class Nesting:
    """Whether nested spans are recorded separately. The badge (web/badge_requests.py) sets `is_off`
    if it needs all executions of a request under the request's name.
    """

    is_off = False


nesting = Nesting()

_running: ContextVar[int] = ContextVar("queryprof.span")


class span:
    """A named piece of work: a context manager, and a decorator of functions and coroutines.

    A span measures wall time, the thread's CPU time, and queries. An execution belongs to the
    innermost span. The CPU time is known for a decorated coroutine, but unknown for a `with` block
    that awaits. While recording is off, a span does nothing.

        with queryprof.span("checkout"): ...

        @queryprof.span("import")
        async def load(): ...
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a span needs a name, not {name!r}")
        self.name = str.__str__(name)  # without the attributes of a subclass
        self._begun: list[tuple[int, Token[int] | None]] = []

    def __enter__(self) -> Self:
        number = begin_span(self.name)
        self._begun.append((number, _running.set(number) if number else None))
        return self

    def __exit__(self, kind: object, *exc_info: object) -> None:
        begun = self._innermost_span()
        try:
            self._begun.remove(begun)  # type: ignore[arg-type]
        except ValueError:
            return  # it was not entered, or another thread that shares it has ended the span
        number, token = begun  # type: ignore[misc]
        _core.span_end(number, kind is not None)
        if token is not None:
            try:
                _running.reset(token)
            except (ValueError, RuntimeError):
                pass  # the span began in another context, which ends with its task

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
        """Wrap a coroutine that does all of the span's work, so that the span gets the coroutine's
        CPU time.
        """
        return _core.span_coroutine(self._number(), coroutine)

    def set_status(self, status: int) -> None:
        """Record the HTTP status of a request. An impossible status is ignored."""
        if 0 < status < MAX_STATUS:
            _core.count_span_status(self._number(), status)

    def figures(self) -> tuple[int, int]:
        """Return the span's number of queries so far, and their time in the driver in ns. Both
        figures are 0 if the span is not running, or if recording is off.
        """
        return _core.span_database_figures(self._number())

    def _innermost_span(self) -> tuple[int, Token[int] | None] | None:
        """Return the span that this object began last in this context; None if the object was not
        entered. Several threads or tasks may share the object.
        """
        running = _running.get(0)
        begun = self._begun[-1:]
        if begun and begun[0][0] == running:
            return begun[0]
        others = self._begun[::-1]
        here = [one for one in others if one[0] == running] or [one for one in others if not one[0]]
        return next(iter(here or others), None)

    def _number(self) -> int:
        begun = self._innermost_span()
        return begun[0] if begun else 0


class outer_span(span):
    """A span that never counts as nested, because its context may contain an earlier, unrelated
    span. An object can be entered only once.
    """

    def __enter__(self) -> Self:
        self._before = _running.set(0)
        return super().__enter__()

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        try:
            _running.reset(self._before)
        except (ValueError, RuntimeError):
            pass  # the span began in another context


def begin_span(name: str) -> int:
    """Begin a span, and return its number for the context variable and for `span_end`. Return 0 if
    recording is off, or if the span is nested while `nesting.is_off`.
    """
    if not _core.is_on() or (nesting.is_off and _running.get(0)):
        return 0
    _core.set_span_variable(_running)
    return _core.span_begin(name)
