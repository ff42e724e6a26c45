"""Signals wait while queryprof works in the midst of the program: a handler may raise, and what it
raises is the program's.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS")
"""The signals of a thread's own faults, which the kernel does not let wait."""

HELD = _signal.valid_signals() - {getattr(_signal, name) for name in FAULTS}


class held_signals:
    """A context in which this thread takes no signal: their handlers run, and may raise, at its
    end.

    A process with several threads takes them in another one, whose handlers still run in the main
    thread: `is_of_handler` knows their exceptions.
    """

    def __enter__(self) -> None:
        self._before = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        try:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, HELD)
        except BaseException:  # of a handler that was due
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
            raise

    def __exit__(self, *exc_info: object) -> None:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)


def is_of_handler(error: BaseException) -> bool:
    """Whether an exception has come through a signal's handler."""
    handlers = set(_handlers())
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in handlers:
            return True
        step = step.tb_next
    return False


def _handlers() -> Iterator[CodeType]:
    """The code of the program's handlers: functions, methods, partial functions, objects with
    __call__.
    """
    for number in _signal.valid_signals():
        handler = _signal.getsignal(number)
        handler = getattr(handler, "func", handler)
        for function in (handler, getattr(type(handler), "__call__", None)):  # noqa: B004 its code
            code = getattr(getattr(function, "__func__", function), "__code__", None)
            if code is not None:
                yield code
