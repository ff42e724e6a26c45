"""Event loops that run already when a recording begins: in this thread, and in others.

No library has a list of the loops that run. The frames of a thread have the one that it is in: as
the owner of run_forever, or as the loop of asyncio's Runner, or of a server's own function.
"""

from __future__ import annotations

import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable


def adopt_running(loop_type: type, adopt: Callable[[AbstractEventLoop], object]) -> None:
    """Has each loop of a type that runs adopted, in its own thread: the one that runs here at once,
    others as soon as they get to it.
    """
    try:
        here: AbstractEventLoop | None = sys.modules["asyncio.events"].get_running_loop()
    except RuntimeError:
        here = None  # none runs in this thread
    if here is not None and isinstance(here, loop_type):
        adopt(here)
    for loop in _of_other_threads(loop_type):
        if loop is not here and loop.is_running():
            try:
                loop.call_soon_threadsafe(adopt, loop)
            except RuntimeError:
                pass  # it has closed meanwhile


def _of_other_threads(loop_type: type) -> list[AbstractEventLoop]:
    found: dict[int, AbstractEventLoop] = {}
    for thread, top in sys._current_frames().items():  # noqa: SLF001 a documented function
        frame = top if thread != get_ident() else None
        while frame is not None:
            for value in tuple(frame.f_locals.values()):
                one = value if isinstance(value, loop_type) else _of_runner(value)
                if isinstance(one, loop_type):
                    found[id(one)] = one  # type: ignore[assignment]
            frame = frame.f_back
    return list(found.values())


def _of_runner(value: object) -> object:
    """The loop of an asyncio.Runner."""
    kind = type(value)
    is_runner = (kind.__module__, kind.__name__) == ("asyncio.runners", "Runner")
    return getattr(value, "_loop", None) if is_runner else None
