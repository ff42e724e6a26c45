"""Attach to asyncio's own event loops: measure every step, every timer, and a heartbeat.

A C function replaces Handle._run, which runs each callback and each step of a task. run_forever
marks the start and stop of a loop. create_task is measured because its caller is the line that
submits a library's coroutine.
"""

from __future__ import annotations

import gc
import sys
from time import monotonic

from queryprof.core import _core
from queryprof.hooks.event_loops.heartbeat import Heartbeat, stop_all_heartbeats
from queryprof.hooks.event_loops.running import adopt_running
from queryprof.hooks.replacing import Replacements
from queryprof.hooks.settings import hook_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from types import ModuleType

KIND = "asyncio"


def start_heartbeat(
    loop: AbstractEventLoop, due_s: float, busy_since_s: float
) -> Callable[[], None]:
    """Start the heartbeat of a running loop. Returns a function that stops it.

    Args:
        due_s: time of the first beat in seconds of the monotonic clock; may be in the past.
        busy_since_s: start of the loop's current busy period.
    """
    heartbeat = Heartbeat(KIND, loop.call_at, loop.is_running)
    heartbeat.record_and_schedule(due_s, busy_since_s)
    return heartbeat.stop


class AsyncioLoop:
    """Measures asyncio's loops."""

    module = "asyncio.base_events"
    """The hook can attach after this module is imported."""

    def __init__(self, module: str) -> None:
        self.module = module
        self._replaced = Replacements()
        self._time: object = None

    def attach(self, base_events: ModuleType) -> None:
        """Replace the functions; all or none.

        Raises:
            TypeError: asyncio is not as expected.
        """
        from _asyncio import Task

        events = sys.modules["asyncio.events"]
        handle, loop = events.Handle, base_events.BaseEventLoop
        runner = _core.handle_run_wrapper(
            handle.__dict__["_run"], handle, events.TimerHandle, Task, Heartbeat
        )
        self._replaced.measure(handle, "_run", runner)
        run_forever = _core.loop_run_wrapper(
            loop.__dict__["run_forever"],
            KIND,
            True,
            start_heartbeat,
            loop.time,
            hook_settings.heartbeat_s,
        )
        self._replaced.measure(loop, "run_forever", run_forever)
        boundary = loop.__dict__["_run_once"].__code__
        create_task = _core.task_creation_wrapper(loop.__dict__["create_task"], boundary, Task)
        self._replaced.measure(loop, "create_task", create_task)
        gc.callbacks.append(_core.on_gc)
        self._time = loop.time
        adopt_running(loop, self._adopt)

    def detach(self) -> None:
        """Restore the functions."""
        self._replaced.undo()
        stop_all_heartbeats()
        if _core.on_gc in gc.callbacks:
            gc.callbacks.remove(_core.on_gc)
        _core.clear_handle_types()

    def _adopt(self, running: AbstractEventLoop) -> None:
        """Measure a loop that was already running when the recording started."""
        if not _core.is_on() or not _core.register_running_loop(KIND, running, True, True):
            return
        if getattr(running.time, "__func__", None) is self._time:
            start_heartbeat(running, monotonic() + hook_settings.heartbeat_s, 0.0)
