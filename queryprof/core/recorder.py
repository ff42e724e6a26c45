"""The recorder: starts the measuring core and empties it into sinks, once a second and at the end.

It does not know what a sink does with what it gets (the trace writes it to a file), nor what
the probes are attached to.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock
from time import thread_time_ns

from queryprof.core import _core
from queryprof.core.user_code import code_prefixes, is_typed_in

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import in somebody's program
    from typing import Protocol

    from queryprof.core.settings import Settings

    class Sink(Protocol):
        """Where a recording goes. Any method may raise OSError or sqlite3.Error: it is dropped."""

        def begin(self) -> None:
            """Starts a flush: what follows belongs together."""

        def add_aggregates(self, rows: list[_core.AggregateRow]) -> None: ...
        def add_errors(self, rows: list[_core.ErrorRow]) -> None: ...
        def add_exemplars(self, rows: list[_core.ExemplarRow]) -> None: ...
        def add_stack_samples(self, rows: list[_core.StackSampleRow]) -> None: ...
        def add_plans(self, rows: list[_core.PlanRow]) -> None: ...
        def add_work(self, work: Work) -> None: ...
        def add_timeline(self, width_ns: int, rows: list[_core.TimelineRow]) -> None: ...
        def add_loops(
            self,
            loops: list[_core.LoopRow],
            steps: list[_core.StepRow],
            stalls: list[_core.StallRow],
        ) -> None: ...

        def commit(self, flush_ns: int, losses: tuple[int, int, int, int]) -> None:
            """Ends a flush; `flush_ns` is the CPU time that it took so far, and what was spent on
            new statements since the one before.
            """

        def fail(self, error: Exception) -> None:
            """A method raised, and nothing more will come."""


class Work:
    """What was recorded of where work belongs: rows as the core gives them."""

    __slots__ = ("ended_threads", "handoffs", "notes", "repeats", "spans", "statuses")

    def __init__(self) -> None:
        self.spans = _core.take_spans()
        self.repeats = _core.take_repeats()
        self.statuses = _core.take_statuses()
        self.handoffs = _core.take_handoffs()
        self.notes = _core.take_notes()
        self.ended_threads = _core.take_ended_threads()


BATCH_ROWS = 1000
"""Aggregates taken at a time: bounds the memory and how long the GIL is held."""

FLUSH_INTERVAL_S = 1.0


PLANS_SHARE = 1 / 64
"""Of the program's time, at most so much is spent on asking for query plans."""


class muted:
    """While it lasts, no query of this thread is recorded."""

    def __enter__(self) -> None:
        self._before = _core.set_muted(True)

    def __exit__(self, *exc_info: object) -> None:
        _core.set_muted(self._before)


STDERR = 2


def _stderr_file() -> tuple[int, int, int] | None:
    """What identifies the file behind descriptor 2; None: it is closed."""
    try:
        status = os.fstat(STDERR)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_rdev


_stderr_at_start = _stderr_file()


def complain(message: str) -> None:
    """Writes one line to stderr, in the program's process; never raises.

    Not where the program has closed descriptor 2 and opened a file of its own there.
    """
    stream = sys.stderr
    try:
        if stream.fileno() == STDERR and _stderr_file() != _stderr_at_start:
            return
    except Exception:
        pass  # a stream in memory has no descriptor
    try:
        stream.write(f"queryprof: {message}\n")
    except Exception:
        pass  # no stderr (a service, a closed terminal)


class Recorder:
    """The one recorder of a process; there is one measuring core."""

    def __init__(self) -> None:
        self.lock = allocate_lock()
        """Held during a flush."""
        self._sinks: list[Sink] = []
        self._own_ns = 0

    def start(self, settings: Settings) -> float:
        """Starts the core and returns what a probed call costs here, in nanoseconds."""
        _core.start(settings.parameters)
        self._own_ns = _core.own_ns()
        _core.plans_allow(PLANS_SHARE if settings.plans else 0.0)
        _core.configure(
            code_prefixes(settings.roots), settings.call_path_frames, os.getcwd(), is_typed_in()
        )
        return _core.probe_cost_ns()

    def release_sinks(self) -> None:
        """Flushes, and sends nothing more to any sink."""
        self.flush()
        self._sinks.clear()

    def stop(self) -> None:
        """Stops the core."""
        _core.stop()

    def add_sink(self, sink: Sink) -> None:
        """Sends what is recorded from now on to `sink` too; the first one gets all there is."""
        if self._sinks:
            self.flush()
        _core.restart_exemplars()
        self._sinks.append(sink)

    def remove_sink(self, sink: Sink) -> None:
        """Flushes, and sends `sink` nothing more."""
        self.flush()
        if sink in self._sinks:
            self._sinks.remove(sink)

    def flush(self, everything: bool = True) -> None:
        """Moves what was recorded since the last flush to the sinks.

        Args:
            everything: also the little that idle event loops leave.
        """
        with self.lock, muted():
            _core.settle()
            started_ns = thread_time_ns()
            began = _core.loops_changed(everything) or _core.work_changed()
            if began:
                self._each(lambda sink: sink.begin())
            while True:
                rows = _core.take_aggregates(BATCH_ROWS)
                if rows and not began:
                    began = True
                    self._each(lambda sink: sink.begin())
                if rows:
                    self._each(lambda sink, rows=rows: sink.add_aggregates(rows))
                if len(rows) == BATCH_ROWS:
                    continue
                if began:
                    self._flush_samples()
                if _core.end_interval() or not rows:
                    break
            if began:
                losses = _core.losses()
                own_ns = _core.own_ns()
                spent_ns = thread_time_ns() - started_ns + own_ns - self._own_ns
                self._own_ns = own_ns
                self._each(lambda sink: sink.commit(spent_ns, losses))

    def after_fork(self) -> None:
        """In a forked child: what was recorded, and the sinks, are the parent's."""
        self._sinks = []
        self.lock = allocate_lock()
        _core.after_fork()

    def _flush_samples(self) -> None:
        errors = _core.take_errors()
        exemplars = _core.take_exemplars()
        stack_samples = _core.take_stack_samples()
        width_ns, timeline = _core.take_timeline()
        plans = _core.take_plans()
        work = Work()
        stalls = _core.take_stalls()
        steps = _core.take_steps()
        loops = _core.take_loops()

        def add(sink: Sink) -> None:
            sink.add_errors(errors)
            sink.add_exemplars(exemplars)
            sink.add_stack_samples(stack_samples)
            sink.add_plans(plans)
            sink.add_work(work)
            sink.add_timeline(width_ns, timeline)
            sink.add_loops(loops, steps, stalls)

        self._each(add)

    def _each(self, step: object) -> None:
        """Does a step for every sink, and drops a sink that fails: the program goes on."""
        for sink in list(self._sinks):
            try:
                step(sink)  # type: ignore[operator]
            except Exception as error:
                self._sinks.remove(sink)
                sink.fail(error)
