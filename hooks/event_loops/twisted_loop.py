"""Attach to Twisted's reactors.

This measures the methods that run delayed calls and I/O, the lag of delayed calls, and a heartbeat.
A reactor on top of asyncio is measured as asyncio.
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.hooks.event_loops.heartbeat import Heartbeat
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

KIND = "twisted"

STEPS = {
    "twisted.internet.base": ("ReactorBase", "runUntilCurrent"),
    "twisted.internet.posixbase": ("_PollLikeMixin", "_doReadOrWrite"),
    "twisted.internet.selectreactor": ("SelectReactor", "_doReadOrWrite"),
}
"""By module: the class, and the method whose calls are steps."""


def start_heartbeat(reactor: Any) -> Callable[[], None]:
    """Start the heartbeat of a reactor that is about to run. Returns a function that stops it."""

    def call_at(due_s: float, beat: Heartbeat) -> object:
        from time import monotonic

        return _Cancellable(reactor.callLater(max(0.0, due_s - monotonic()), tick, beat))

    def tick(beat: Heartbeat) -> None:
        now_s = reactor.seconds()
        for call in reactor.getDelayedCalls():
            if call.active() and call.getTime() < now_s:
                _core.add_timer_lag(now_s - call.getTime())
        beat()

    heartbeat = Heartbeat(KIND, call_at, lambda: bool(reactor.running))
    heartbeat.start()
    return heartbeat.stop


class _Cancellable:
    """A delayed call that may be cancelled even after it ran."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def cancel(self) -> None:
        if self._call.active():
            self._call.cancel()


class TwistedLoop:
    """Measures one of Twisted's modules.

    Args:
        module: a key of STEPS.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self._replaced = Replacements()

    def attach(self, module: ModuleType) -> None:
        """Replace the methods."""
        class_name, method = STEPS[self.module]
        owner = getattr(module, class_name)
        self._replaced.measure(owner, method, _core.step_wrapper(vars(owner)[method]))
        if "mainLoop" in vars(owner):
            runner = _core.loop_run_wrapper(vars(owner)["mainLoop"], KIND, True, start_heartbeat)
            self._replaced.measure(owner, "mainLoop", runner)

    def detach(self) -> None:
        """Restore the methods."""
        self._replaced.undo()
