"""A session: attaches the drivers, starts the recorder, and sees to it that everything measured
reaches the trace, however the process ends.

This is the one place that joins the stages attach, record and keep; the public functions and
the environment's hook start here.
"""

from __future__ import annotations

import atexit
import os
import sys
from _thread import allocate_lock

from queryprof.core import _core
from queryprof.core.recorder import FLUSH_INTERVAL_S, Recorder, complain, muted
from queryprof.core.settings import Settings, read_settings
from queryprof.errors import SessionError
from queryprof.hooks.heartbeat import interval
from queryprof.hooks.imports import ImportHooks
from queryprof.hooks.libraries import library_hooks
from queryprof.hooks.sqlite3_driver import Sqlite3Driver
from queryprof.trace.writer import TraceWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STOP_TIMEOUT_S = 5.0
"""How long the end of a program waits for a flush that hangs."""

HURRIED_SWITCH_INTERVAL_S = 1e-5


class hurry:
    """While it lasts, a thread that waits for the GIL gets it at once.

    Every call of SQLite gives the GIL away; with busy threads in the program each would cost a
    switch interval (5 ms) for each of them, and the last flush would keep the program from ending.
    """

    def __enter__(self) -> None:
        self._before_s = sys.getswitchinterval()
        sys.setswitchinterval(HURRIED_SWITCH_INTERVAL_S)

    def __exit__(self, *exc_info: object) -> None:
        sys.setswitchinterval(self._before_s)


class Session:
    """The recording of this process, while there is one."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.driver = Sqlite3Driver()
        self.libraries = ImportHooks(library_hooks(), complain)
        self._stall_s = 0.0
        self._keeps_values = False
        self._lock = allocate_lock()
        self._writers: list[TraceWriter] = []
        self._child_path: Callable[[], str] | None = None
        self._pid = 0
        self._call_cost_ns = 0.0
        self._watches_fork = False
        self._fork_is_ours = False

    @property
    def is_on(self) -> bool:
        return _core.is_on()

    def start(self, settings: Settings | None = None) -> None:
        """Starts recording; all or nothing.

        Raises:
            SettingsError: the settings make no sense.
            SessionError: this interpreter or its SQLite cannot be recorded.
        """
        settings = settings or read_settings()
        with self._lock:
            if self.is_on:
                return
            try:
                self._call_cost_ns = self.recorder.start(settings)
                with muted():
                    self.driver.attach()
                self._stall_s = settings.stall_ms / 1000
                self._keeps_values = settings.parameters
                interval.s = settings.heartbeat_ms / 1000
                self._start_threads()
                self.libraries.attach()
            except Exception as error:
                self.libraries.detach()
                self._stop_threads()
                self.driver.detach()
                _core.stop()
                raise SessionError(f"recording cannot start: {error}") from error
            self._pid = os.getpid()
            _core.watch_last_call(self._on_last_call)
            atexit.register(self._at_exit)
            if not self._watches_fork and hasattr(os, "register_at_fork"):
                self._watches_fork = True
                os.register_at_fork(
                    before=self._before_fork,
                    after_in_parent=self._after_fork_in_parent,
                    after_in_child=self._after_fork_in_child,
                )

    def stop(self) -> None:
        """Stops recording, puts every type and function back, and closes the traces."""
        with self._lock, hurry():
            if not self.is_on:
                return
            atexit.unregister(self._at_exit)
            self._stop_threads()
            _core.watch_last_call(None)
            self.libraries.detach()
            self.driver.detach()
            self.recorder.release_sinks()
            for writer in self._writers:
                writer.close(clean_end=True)
            self._writers.clear()
            self.recorder.stop()

    def open_trace(
        self, path: str, child_path: Callable[[], str] | None = None, even_if_empty: bool = True
    ) -> TraceWriter:
        """Adds a trace that gets what is recorded from now on.

        Args:
            even_if_empty: whether there shall be a file when nothing was recorded.
            child_path: gives the path of the trace of a forked child; None: children write none.
        """
        writer = TraceWriter(
            path, self._call_cost_ns, self.driver.counters_off, even_if_empty, self._keeps_values
        )
        self.recorder.add_sink(writer)
        self._writers.append(writer)
        self._child_path = child_path or self._child_path
        return writer

    def close_trace(self, writer: TraceWriter) -> None:
        """Brings a trace up to date and closes it."""
        self.recorder.remove_sink(writer)
        self._writers.remove(writer)
        writer.close(clean_end=True)

    def _start_threads(self) -> None:
        """Gets the flusher and the watchdog ready: each starts when there is work for it."""
        _core.flusher_start(self._flush_in_background, FLUSH_INTERVAL_S)
        _core.watchdog_start(self._stall_s)

    def _stop_threads(self) -> None:
        _core.flusher_stop(STOP_TIMEOUT_S)
        _core.watchdog_stop(STOP_TIMEOUT_S)

    def _flush_in_background(self) -> None:
        self._flush(everything=False)

    def _flush(self, everything: bool = True) -> None:
        try:
            self.recorder.flush(everything)
        except Exception as error:
            complain(f"a flush failed: {error}")

    def _at_exit(self) -> None:
        if os.getpid() == self._pid:
            # To the end of the process: what the last flush leaves may make the ending thread
            # collect garbage, and each connection in it is closed by a call of SQLite.
            sys.setswitchinterval(HURRIED_SWITCH_INTERVAL_S)
            self.stop()

    def _on_last_call(self, name: str) -> None:
        """A function is about to end the process, perhaps, without Python's own end."""
        with hurry():
            self._flush()
            if name == "_exit":
                for writer in self._writers:
                    if writer.has_file:
                        writer.close(clean_end=True)

    def _before_fork(self) -> None:
        # A flush in another thread holds locks of SQLite, which the child would never get; and
        # Python (3.12 on) warns of a fork while there are threads. The thread starts again only
        # when the program asks something, so what it would have written is written now.
        self._fork_is_ours = self.is_on
        if self._fork_is_ours:
            self._stop_threads()
            self._flush()

    def _after_fork_in_parent(self) -> None:
        if self._fork_is_ours and self.is_on:
            self._start_threads()

    def _after_fork_in_child(self) -> None:
        if not self.is_on:
            return
        self._pid = os.getpid()
        self._lock = allocate_lock()
        # The parent's connections are left alone: closing them here would drop its locks.
        _abandoned.extend(self._writers)
        self._writers = []
        self.recorder.after_fork()
        try:
            if self._child_path:
                self.open_trace(self._child_path(), self._child_path, even_if_empty=False)
            self._start_threads()
        except Exception as error:
            complain(f"a forked child is not recorded: {error}")


_abandoned: list[TraceWriter] = []
"""Writers of a parent process: never closed, never freed."""

session = Session()
"""The session of this process."""


def running_program() -> str:
    """What to call the running program's trace: its script or module, without a path."""
    arguments: list[str] = getattr(sys, "orig_argv", sys.argv)[1:]
    for position, argument in enumerate(arguments):
        if argument == "-m" and position + 1 < len(arguments):
            return arguments[position + 1]
        if argument == "-c":
            break
        if not argument.startswith("-"):
            return os.path.splitext(os.path.basename(argument))[0]
    return "python"
