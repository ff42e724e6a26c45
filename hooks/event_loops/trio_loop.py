"""Attach to trio, through its Instrument interface.

trio calls an instrument when a step of a task begins or ends, and when the run waits for I/O.
queryprof adds its instrument after a run is set up, and sees the end of the run in Runner.close. An
instrument with before_run and after_run would fail trio's own tests, which read Runner.instruments.

There is no heartbeat, because it would be an extra task in the program's tree. Instead, the lag is
computed from the times of the events. It is zero while trio waits. While trio runs tasks, the lag
at a moment is the time until the next wait.
"""

from __future__ import annotations

from time import monotonic

from queryprof.core import _core
from queryprof.core.held_signals import came_from_handler
from queryprof.core.recorder import complain
from queryprof.hooks.event_loops.heartbeat import Beats
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

KIND = "trio"


class StepInstrument:
    """The handler for the events of one run (trio.abc.Instrument)."""

    def __init__(self) -> None:
        self._beats = Beats(KIND)
        self._is_entered = _core.register_running_loop(KIND, self, True, False)
        self._busy_since_s = monotonic()
        self._due_s = self._busy_since_s + self._beats.interval_s
        self._beats.start()

    def _end_measuring(self) -> None:
        """Stop measuring the run. This is not one of trio's events."""
        self._beats.stop()
        if self._is_entered:
            _core.unregister_running_loop()

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
    """Measures trio's runs."""

    module = "trio._core._run"

    def __init__(self, module: str) -> None:
        self.module = module
        self._replaced = Replacements()

    def attach(self, run: ModuleType) -> None:
        """Add an instrument to each new run."""
        self._instruments: dict[int, StepInstrument] = {}
        watches = ((run, "setup_runner", self._set_up), (run.Runner, "close", self._close))
        wrappers = [
            (owner, name, _core.watched_call_wrapper(vars(owner)[name], watch))
            for owner, name, watch in watches
        ]
        for owner, name, wrapper in wrappers:  # all or none
            self._replaced.measure(owner, name, wrapper)

    def detach(self) -> None:
        """Restore the functions. Instruments of running runs then record nothing."""
        self._replaced.undo()
        self._instruments.clear()

    def _set_up(self, is_over: bool, *call: Any) -> None:
        runner = call[-1]
        if not is_over or runner is None:
            return
        try:
            instrument = StepInstrument()
            self._instruments[id(runner)] = instrument
            runner.instruments.add_instrument(instrument)
        except Exception as error:  # an exception here would reach the program
            if came_from_handler(error):
                raise
            complain(f"a run of trio is not measured: {error}")

    def _close(self, is_over: bool, *call: Any) -> None:
        if is_over:
            instrument = self._instruments.pop(id(call[0]), None)
            if instrument is not None:
                instrument._end_measuring()  # noqa: SLF001  (trio would call a public method it knows)
