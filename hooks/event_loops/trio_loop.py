"""Attaches to trio, through its Instrument interface.

trio calls it when a step of a task begins and ends, and when it waits for I/O. A heartbeat would be
our task in the program's tree; its lag is computed from these times instead: none while trio waits,
and until it waits again while it runs.
"""

from __future__ import annotations

from time import monotonic

from queryprof.core import _core
from queryprof.hooks.event_loops.heartbeat import Beats
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

KIND = "trio"


class StepInstrument:
    """Called by trio at each event (trio.abc.Instrument)."""

    def __init__(self) -> None:
        self._beats = Beats(KIND)
        self._due_s = 0.0
        self._busy_since_s = 0.0
        self._is_entered = False

    def before_run(self) -> None:
        self._is_entered = _core.enter_loop(KIND, self, True, False)
        self._busy_since_s = monotonic()
        self._due_s = self._busy_since_s + self._beats.interval_s
        self._beats.start()

    def after_run(self) -> None:
        self._beats.stop()
        if self._is_entered:
            _core.leave_loop()

    def before_task_step(self, task: Any) -> None:
        code = getattr(task.coro, "cr_code", None)
        if code is not None:
            _core.step_begin(code)

    def after_task_step(self, _task: Any) -> None:
        _core.step_end()

    def before_io_wait(self, _timeout: float) -> None:
        now_s = monotonic()
        self._due_s = self._beats.record(self._due_s, now_s, self._busy_since_s)

    def after_io_wait(self, _timeout: float) -> None:
        self._busy_since_s = monotonic()


class TrioLoop:
    """The measuring of trio's runs."""

    module = "trio._core._run"

    def __init__(self, module: str) -> None:
        self.module = module
        self._replaced = Replacements()

    def attach(self, run: ModuleType) -> None:
        """Adds one instrument to every run."""
        original = run.setup_runner

        def setup_runner(clock: object, instruments: Any, *rest: object) -> object:
            return original(clock, [*instruments, StepInstrument()], *rest)

        self._replaced.set(run, "setup_runner", setup_runner)

    def detach(self) -> None:
        """Puts the function back."""
        self._replaced.undo()
