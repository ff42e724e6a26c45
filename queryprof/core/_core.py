"""The substitute for the measuring core where the core is not available: on another system or
interpreter, or without a compiler (docs/platforms.md).

Python finds the compiled core first. The substitute never records. Some of its functions do what
the core does while recording is off. All other functions raise an error with the reason.
"""

from __future__ import annotations

import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


def _why_missing() -> str:
    """Return a sentence with the reason why the core is missing."""
    if "IS_SUBINTERPRETER" in globals():
        return "queryprof records only in the main interpreter, but this is a subinterpreter"
    if sys.implementation.name != "cpython":
        return f"queryprof records only in CPython, but this is {sys.implementation.name}"
    if sys.platform != "linux":
        return f"queryprof records only on Linux, but this is {sys.platform}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "queryprof records only Python with a global interpreter lock, but this has none"
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


def operation_names() -> tuple[str, ...]:
    """Return an empty tuple."""
    return ()


def span_begin(name: str, /) -> int:
    """Return 0: there are no spans."""
    del name
    return 0


def span_database_figures(span: int, /) -> tuple[int, int]:
    """Return zeros, because the substitute records no executions."""
    del span
    return 0, 0


def span_coroutine(span: int, coroutine: Any, /) -> Any:
    """Return the coroutine unchanged."""
    del span
    return coroutine


def call_untraced(function: Callable[[], object], /) -> object:
    """Call a function."""
    return function()


def file_work_unknown_reason() -> str | None:
    """Return why file work is unknown."""
    return ABSENCE


def frames_are_direct() -> bool:
    """Return False, because the substitute reads no frames."""
    return False


def clock_source() -> tuple[str, float]:
    """Return "none" as the name of the clock, and 0 ns per tick."""
    return "none", 0.0


def _do_nothing(*_: object) -> None:
    """Do nothing, like the core while recording is off."""


def _raise_absence(*_: object) -> NoReturn:
    from queryprof.errors import SessionError

    raise SessionError(ABSENCE)


span_end = count_span_status = set_span_variable = _do_nothing
stop = after_fork = detach = counters_stop = prevent_window_removal = _do_nothing
set_lock_refusal_explainer = set_signal_check = _do_nothing
watchdog_start = watchdog_stop = clear_handle_types = on_gc = _do_nothing
register_running_loop = unregister_running_loop = _do_nothing
add_heartbeat_lag = add_timer_lag = _do_nothing
begin_unseen_step = step_begin = step_end = _do_nothing


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """Return a function that raises SessionError: without the compiled core nothing is recorded."""
    if name.startswith("_"):
        raise AttributeError(name)
    return _raise_absence
