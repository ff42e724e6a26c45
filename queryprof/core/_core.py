"""What stands in the place of the measuring core where it cannot be had: another system or
interpreter than it is written for, or no compiler (docs/platforms.md).

Python finds the compiled core first. Here nothing is ever recorded: what the core does while
nothing is recorded is done here, too; the rest says why not.
"""

from __future__ import annotations

import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


def _absence() -> str:
    """Why the core is not there, in a sentence."""
    if "IS_SUBINTERPRETER" in globals():
        return "queryprof records in the main interpreter, and this is a subinterpreter"
    if sys.implementation.name != "cpython":
        return f"queryprof records in CPython, and this is {sys.implementation.name}"
    if sys.platform != "linux":
        return f"queryprof records on Linux, and this is {sys.platform}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "queryprof records where Python has its global interpreter lock, and this has none"
    return "queryprof was installed without its core (no C compiler, or QUERYPROF_CORE=none)"


ABSENCE = _absence()


def is_on() -> bool:
    """Never."""
    return False


def has_recorded() -> bool:
    """Never."""
    return False


def set_muted(muted: bool, /) -> bool:
    """Nothing is recorded anyway."""
    del muted
    return False


def operations() -> tuple[str, ...]:
    """None."""
    return ()


def span_begin(name: str, /) -> int:
    """There is no span."""
    del name
    return 0


def span_figures(span: int, /) -> tuple[int, int]:
    """Nothing was executed that is known."""
    del span
    return 0, 0


def span_watch(span: int, coroutine: Any, /) -> Any:
    """The coroutine as it is."""
    del span
    return coroutine


def untraced(function: Callable[[], object], /) -> object:
    """Calls a function."""
    return function()


def files_off() -> str | None:
    """Why work on files is unknown."""
    return ABSENCE


def frames_are_direct() -> bool:
    """No frame is looked at."""
    return False


def clock_source() -> tuple[str, float]:
    """No clock is read."""
    return "none", 0.0


def _nothing(*_: object) -> None:
    """Does nothing, as the core does while nothing is recorded."""


def _refuse(*_: object) -> NoReturn:
    from queryprof.errors import SessionError

    raise SessionError(ABSENCE)


span_end = span_status = set_span_variable = _nothing
stop = after_fork = detach = counters_stop = hold_windows = explain_refusals = _nothing
watchdog_start = watchdog_stop = clear_handles = on_gc = _nothing
enter_loop = leave_loop = loop_beat = loop_timer = await_beat = step_begin = step_end = _nothing


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """What reads or configures a recording: there is none."""
    if name.startswith("_"):
        raise AttributeError(name)
    return _refuse
