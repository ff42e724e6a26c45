"""Delay signals while queryprof works inside the program. A signal handler may raise an exception.
The exception must reach the program, and not queryprof.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, TracebackType

FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS")
"""Signals for faults of the running thread. The kernel cannot delay these signals."""

OWN = ("SIGXFSZ",)
"""Signals that queryprof itself may cause when it writes a file. collect/keep.py handles these
signals.
"""

HELD = _signal.valid_signals() - {getattr(_signal, name) for name in (*FAULTS, *OWN)}


class held_signals:
    """A context in which this thread takes no signals. Handlers run, and may raise, when the
    context ends.

    In a process with several threads, another thread takes the signals, but the handlers still run
    in the main thread. `came_from_handler` recognizes the handlers' exceptions.
    """

    def __enter__(self) -> None:
        self._before = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        try:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, HELD)
        except BaseException:  # raised by a pending handler
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
            raise

    def __exit__(self, *exc_info: object) -> None:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)


def came_from_handler(error: BaseException) -> bool:
    """Return whether an exception came through a signal handler."""
    return _handler_traceback(error) is not None


def strip_if_from_handler(error: BaseException) -> bool:
    """Return whether an exception came through a signal handler, and remove queryprof's frames from
    its traceback.
    """
    part = _handler_traceback(error)
    if part is not None:
        error.__traceback__ = part
    return part is not None


def _handler_traceback(error: BaseException) -> TracebackType | None:
    """Return the part of the traceback that begins at a signal handler's frame; None if there is no
    such frame.
    """
    handlers = set(_handler_code())
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code not in handlers:
        step = step.tb_next
    return step


def _handler_code() -> Iterator[CodeType]:
    """Yield the code of the program's handlers: functions, methods, partial functions, objects with
    __call__.
    """
    for number in _signal.valid_signals():
        handler = _signal.getsignal(number)
        handler = getattr(handler, "func", handler)
        for function in (handler, getattr(type(handler), "__call__", None)):  # noqa: B004 its code
            code = getattr(getattr(function, "__func__", function), "__code__", None)
            if code is not None:
                yield code
