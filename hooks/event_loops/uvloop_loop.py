"""Attach to uvloop, whose steps cannot be measured because it has its own handles.

The heartbeat measures the loop's lag. The database calls since the last beat explain the lag.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.hooks.event_loops.heartbeat import Heartbeat
from queryprof.hooks.event_loops.running import adopt_running
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from types import ModuleType

KIND = "uvloop"


def start_heartbeat(loop: AbstractEventLoop) -> Callable[[], None] | None:
    """Start the heartbeat of a loop that is about to run. Returns a function that stops it."""
    if loop.is_closed():
        return None
    heartbeat = Heartbeat(KIND, loop.call_at, loop.is_running, _core.begin_unseen_step)
    heartbeat.start()
    return heartbeat.stop


class UvloopLoop:
    """Measures uvloop's loops."""

    module = "uvloop"

    def __init__(self, module: str) -> None:
        self.module = module
        self._replaced = Replacements()

    def attach(self, uvloop: ModuleType) -> None:
        """Replace run_forever of the loop's Python class."""
        runner = _core.loop_run_wrapper(uvloop.Loop.run_forever, KIND, False, start_heartbeat)
        self._replaced.measure(uvloop.Loop, "run_forever", runner)
        adopt_running(uvloop.Loop, self._adopt)

    def detach(self) -> None:
        """Restore the function."""
        self._replaced.undo()

    def _adopt(self, running: AbstractEventLoop) -> None:
        """Measure a loop that was already running when the recording started."""
        if _core.is_on() and _core.register_running_loop(KIND, running, False, True):
            start_heartbeat(running)
