"""Find event loops that already run when a recording begins, in any thread.

No library lists its running loops, but the frames of a thread contain its loop: as the owner of
run_forever, as the loop of asyncio's Runner, or as a variable of a server's function.
"""

from __future__ import annotations

import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable


def adopt_running(loop_type: type, adopt: Callable[[AbstractEventLoop], object]) -> None:
    """Call `adopt` for each running loop of a type, in the loop's own thread.

    This thread's loop is adopted at once. Other loops are adopted by a callback that runs in their
    thread.
    """
    try:
        here: AbstractEventLoop | None = sys.modules["asyncio.events"].get_running_loop()
    except RuntimeError:
        here = None  # no loop runs in this thread
    if here is not None and isinstance(here, loop_type):
        adopt(here)
    for loop in _loops_of_other_threads(loop_type):
        if loop is not here and loop.is_running():
            try:
                loop.call_soon_threadsafe(adopt, loop)
            except RuntimeError:
                pass  # the loop has closed meanwhile


def _loops_of_other_threads(loop_type: type) -> list[AbstractEventLoop]:
    found: dict[int, AbstractEventLoop] = {}
    for thread, top in sys._current_frames().items():  # noqa: SLF001 a documented function
        frame = top if thread != get_ident() else None
        while frame is not None:
            for value in tuple(frame.f_locals.values()):
                one = value if isinstance(value, loop_type) else _runner_loop(value)
                if isinstance(one, loop_type):
                    found[id(one)] = one  # type: ignore[assignment]
            frame = frame.f_back
    return list(found.values())


def _runner_loop(value: object) -> object:
    """Return the loop of an asyncio.Runner."""
    kind = type(value)
    is_runner = (kind.__module__, kind.__name__) == ("asyncio.runners", "Runner")
    return getattr(value, "_loop", None) if is_runner else None
