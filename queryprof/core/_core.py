"""The substitute for the measuring core where the core is not available: on another system or
interpreter, or without a compiler (docs/platforms.md).

Python finds the compiled core first. With the substitute nothing is ever recorded. Some functions
do what the core does while it does not record. All others raise an error with the reason.
"""

from __future__ import annotations

import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


def _why_missing() -> str:
    """Return why the core is missing, in a sentence."""
    if "IS_SUBINTERPRETER" in globals():
        return "queryprof records in the main interpreter, and this is a subinterpreter"
    if sys.implementation.name != "cpython":
        return f"queryprof records in CPython, and this is {sys.implementation.name}"
    if sys.platform != "linux":
        return f"queryprof records on Linux, and this is {sys.platform}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "queryprof records where Python has its global interpreter lock, and this has none"
    return "queryprof was installed without its core (no C compiler, or QUERYPROF_CORE=none)"


ABSENCE = _why_missing()


def is_on() -> bool:
    """Return False, because the substitute never records."""
    return False


def has_recorded() -> bool:
    """Return False, because the substitute has never recorded."""
    return False


def set_muted(muted: bool, /) -> bool:
    """Do nothing, and return False."""
    del muted
    return False


def operations() -> tuple[str, ...]:
    """Return an empty tuple."""
    return ()


def span_begin(name: str, /) -> int:
    """Return 0: there are no spans."""
    del name
    return 0


def span_figures(span: int, /) -> tuple[int, int]:
    """Return zeros: no execution is known."""
    del span
    return 0, 0


def span_watch(span: int, coroutine: Any, /) -> Any:
    """Return the coroutine unchanged."""
    del span
    return coroutine


def untraced(function: Callable[[], object], /) -> object:
    """Call a function."""
    return function()


def files_off() -> str | None:
    """Return why file work is unknown."""
    return ABSENCE


def frames_are_direct() -> bool:
    """Return False: no frame is read."""
    return False


def clock_source() -> tuple[str, float]:
    """Return "none" as the name of the clock."""
    return "none", 0.0


def _do_nothing(*_: object) -> None:
    """Do nothing, like the core while it does not record."""


def _refuse(*_: object) -> NoReturn:
    from queryprof.errors import SessionError

    raise SessionError(ABSENCE)


span_end = span_status = set_span_variable = _do_nothing
stop = after_fork = detach = counters_stop = hold_windows = explain_refusals = _do_nothing
recognize_handlers = _do_nothing
watchdog_start = watchdog_stop = clear_handles = on_gc = _do_nothing
enter_loop = leave_loop = loop_beat = loop_timer = await_beat = step_begin = step_end = _do_nothing


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """Return a function that raises SessionError: without the compiled core nothing is recorded."""
    if name.startswith("_"):
        raise AttributeError(name)
    return _refuse
