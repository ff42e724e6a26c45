"""A session attaches the drivers, starts the core, and writes the trace at the end of the process.

If a command such as `queryprof run` collects the recording, the session leaves the writing to that
command. The public functions, and QUERYPROF in the environment, start recordings here.
"""

from __future__ import annotations

import atexit
import os

from queryprof.collect.own_parts import OwnParts
from queryprof.collect.target import TraceTarget
from queryprof.core import _core
from queryprof.core.exclusive import ExclusiveContext
from queryprof.core.held_signals import came_from_handler, held_signals, strip_if_from_handler
from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import complain, muted, start_core
from queryprof.core.settings import Settings, read_settings
from queryprof.core.thread_usage import ThreadMeter
from queryprof.core.undisturbed import undisturbed
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import SessionError
from queryprof.hooks.drivers.sqlite3_driver import Sqlite3Driver
from queryprof.hooks.drivers.unmeasured import unmeasured_modules
from queryprof.hooks.imports import ImportHooks
from queryprof.hooks.libraries import library_hooks
from queryprof.hooks.notebook_cells import cell_names
from queryprof.hooks.settings import hook_settings
from queryprof.hooks.worker_processes import worker_end
from queryprof.region.facts import Facts
from queryprof.region.region_files import (
    checkpoint_path,
    checkpoints_of_trace,
    is_removed,
    region_name,
    regions_of_trace,
    remove_files,
    temporary_directory,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STOP_TIMEOUT_S = 5.0
"""How long the end of a program waits for the watchdog."""


CHECKPOINT_INTERVAL_S = 10.0
"""Maximum age of the copy on the disk, which survives a crash of the machine."""


class Session:
    """The recording of this process, while there is one.

    Attributes:
        counters_off: why sqlite3's counters are unknown; None if they are on, or sqlite3 is unused.
        files_off: why sqlite3's file operations are unknown; None as for `counters_off`.
    """

    def __init__(self) -> None:
        hooks = [Sqlite3Driver(self._note_counters), *library_hooks()]
        self.libraries = ImportHooks(hooks, complain, self._note_versions)
        worker_end.handler = self._end_of_worker
        self._stall_s = 0.0
        self.exclusive = ExclusiveContext(self.stop)  # for start, stop, and reading the recording
        self._is_stopping = False
        self._target: TraceTarget | None = None
        self._window_ns, self._kept = 0, 0  # of traces that are not collected
        self.parts = OwnParts()
        self._facts: Facts | None = None
        self.counters_off: str | None = None
        self.files_off: str | None = None
        self._meter: ThreadMeter | None = None
        self._pid = 0
        self._watches_fork = False
        self._owners: list[object] = []
        self._is_of_owners = False

    @property
    def is_on(self) -> bool:
        return _core.is_on()

    def start(
        self,
        settings: Settings | None = None,
        target: Callable[[], TraceTarget] | None = None,
        ends_at_exit: bool = True,
        owner: object = None,
    ) -> bool:
        """Start recording, completely or not at all.

        Args:
            settings: None for the settings of the working directory.
            target: makes the trace's target, if recording starts. It may raise.
            ends_at_exit: False if the caller arranges a call of `end_of_process` at the end.
            owner: a block that may overlap with others. A recording that a block starts ends when
                the last block is released.

        Returns:
            Whether recording was off before.

        Raises:
            SettingsError: the settings are invalid.
            SessionError: this interpreter or its SQLite cannot be recorded, or a signal handler or
                finalizer calls this while the thread stops the recording.
        """
        with held_signals(), self.exclusive, own_imports():
            if self._is_stopping:
                raise SessionError("recording cannot start while it is ending")
            owners = [owner] * (owner is not None)
            if self.is_on:
                self._owners += [one for one in owners if one not in self._owners]
                return False
            self.watch_forks()
            settings = settings or read_settings()
            self._window_ns, self._kept = settings.window_ns, settings.kept
            made = target() if target else None
            self._start(settings)
            self._owners, self._is_of_owners = owners, bool(owners)
            if ends_at_exit:
                atexit.register(self.end_of_process)
            if made:
                self._share_target(made)
            return True

    def _start(self, settings: Settings) -> None:
        try:
            start_core(settings)
            _core.set_signal_check(strip_if_from_handler)
            if settings.explain_locks:
                from queryprof.hooks.lock_notes import add_lock_note

                _core.set_lock_refusal_explainer(add_lock_note)
            self._facts = Facts(settings.parameters, settings.deployment)
            self._stall_s = settings.stall_ms / 1000
            hook_settings.take(settings)
            _core.watchdog_start(self._stall_s)
            self.libraries.attach()
            self.parts.forget_all()
            self._begin_process()
            self._share("", "", f"{temporary_directory()}/queryprof-{unix_ns()}")
        except BaseException as error:  # an interrupt must not leave a half-finished start either
            self.libraries.detach()
            _core.set_lock_refusal_explainer(None)
            _core.watchdog_stop(STOP_TIMEOUT_S)
            _core.stop()
            if not isinstance(error, Exception) or came_from_handler(error):
                raise
            reason = str(error) or type(error).__name__
            raise SessionError(f"recording cannot start: {reason}") from error

    def watch_forks(self) -> None:
        if not self._watches_fork and hasattr(os, "register_at_fork"):
            self._watches_fork = True
            os.register_at_fork(
                before=_core.fork_hook(self._before_fork),
                after_in_parent=_core.fork_hook(self._after_fork_in_parent),
                after_in_child=_core.fork_hook(self._after_fork_in_child),
            )

    def _note_versions(self) -> None:
        if self._facts is not None:
            self._facts.add(sqlite_version=", ".join(self.libraries.sqlite_versions))

    def _note_counters(self, counters_off: str | None) -> None:
        assert self._facts is not None  # libraries are attached while recording is on
        self.counters_off = counters_off
        self.files_off = counters_off or _core.file_work_unknown_reason()
        self._facts.add(counters_off=counters_off, files_off=self.files_off)

    def _begin_process(self) -> None:
        assert self._facts is not None  # recording is on
        self._pid = os.getpid()
        self._meter = ThreadMeter()
        self._facts.begin(cell_names())
        self.parts.identity = self._facts.identity

    def _share(self, places: str, name: str, parts: str) -> None:
        self.parts.begin(parts)
        _core.configure_windows(0, 0)
        _core.share_region(places, name, self.parts.prefix)

    def continue_to_trace(self, target: Callable[[], TraceTarget] | None) -> None:
        """Continue to record after the owners are gone. The new trace includes the earlier data."""
        with self.exclusive:
            if self.is_on and self._is_of_owners:
                made = target() if target else None  # may raise
                self._is_of_owners = False
                if made:
                    self._share_target(made)

    def release(self, owner: object) -> None:
        """Remove an owner. A recording of owners ends when the last owner is removed."""
        if owner in self._owners:
            self._owners.remove(owner)
            if not self._owners and self._is_of_owners:
                self.stop()

    def _share_target(self, target: TraceTarget) -> None:
        self._target = target
        if target.is_collected and not os.path.isdir(target.family):
            self._target = None  # the runner that would collect it has ended
            self._share("", "", self.parts.path)
            return
        beside = os.path.join(target.family, "part") if target.is_collected else target.family
        parts = beside if target.is_collected else target.path
        self._share("\n".join(target.region_directories()), region_name(target.family), parts)
        target.checkpoint = checkpoint_path(beside, os.getpid())
        _core.configure_checkpoints(target.checkpoint, CHECKPOINT_INTERVAL_S, target.is_collected)
        if self._window_ns and not target.is_collected:
            self.parts.are_windows = True
            _core.configure_windows(self._window_ns, self._kept)
        if self._facts is not None:
            self._facts.add(trace=target.path)

    def stop(self) -> None:
        """Stop recording, restore every type and function, and write the trace.

        If a signal handler or a finalizer calls this during a start or a reading, the stop is
        postponed until the end of the start or reading.
        """
        with held_signals(), self.exclusive:
            if self._is_stopping or not self.is_on:
                return
            if self.exclusive.is_nested:
                self.exclusive.postpone()
                return
            self._is_stopping = True
            try:
                with undisturbed(), own_imports():
                    self._stop()
            finally:
                self._is_stopping = False

    def _stop(self) -> None:
        target, self._target, self._is_of_owners = self._target, None, False
        is_written, region, next_region = False, "", ""
        atexit.unregister(self.end_of_process)
        try:
            _core.watchdog_stop(STOP_TIMEOUT_S)
            _core.set_lock_refusal_explainer(None)
            self.libraries.detach()
            with muted():
                self.write_pending(is_end=True)
                if target:
                    is_written, region = self._keep_or_complain(target)
                if self.parts.has_readers and not self.parts.are_windows:
                    self.end_part()
                    next_region = _core.region_path()
                elif target is None or is_written:
                    self.parts.remove()
        finally:
            _core.stop()
        if target and is_written:  # only now, when no thread can make another copy
            remove_files([region, next_region, target.checkpoint])
            if not target.is_collected:
                self._save_family_traces(target)

    def _keep_or_complain(self, target: TraceTarget) -> tuple[bool, str]:
        try:
            return self._write_last_window(target) if self.parts.are_windows else self._keep(target)
        except Exception as error:
            if came_from_handler(error):
                raise
            reason, folder = str(error), os.path.dirname(target.path) or "."
            named = reason if target.path in reason else f"{target.path}: {reason}"
            what = "last window" if self.parts.are_windows else "trace"
            later = f"; `queryprof report {target.path}` writes it later"
            if self.parts.are_windows:
                later = f"; `queryprof report {target.path}` finds it in memory"
            elif not os.path.isdir(folder):
                named = f"{target.path}: no directory {folder}"
                later = f"{later}, once the directory exists"
            complain(f"the {what} is not written: {named}{later if _core.region_path() else ''}")
            return False, ""

    def _write_last_window(self, target: TraceTarget) -> tuple[bool, str]:
        """Write the last window, which stays with the other windows for readers."""
        path = _core.region_path()
        if target.even_if_empty or self.has_recorded():
            _core.write_last_part()
        return True, path

    def _keep(self, target: TraceTarget) -> tuple[bool, str]:
        """Write the trace, or leave it to the runner, if the runner collects it and can find it.

        Returns:
            Whether the whole trace is written, and the path of the region that it includes.
        """
        is_wanted = target.even_if_empty or self.has_recorded()
        if target.is_collected:
            if not os.path.isdir(target.family) and _core.region_path():
                return False, ""  # the runner that would collect it has ended
            if is_wanted:
                _core.share_region_if_due()
            if _core.region_path() and not is_removed(_core.region_path()):
                return False, ""
        path = _core.region_path()
        if is_wanted:
            from queryprof.collect.keep import write_trace

            write_trace(target.path, self.parts.files(), True, target.since_unix_ns)
        return True, path

    def _save_family_traces(self, target: TraceTarget) -> None:
        """Write the traces of processes of the family that ended without writing them."""
        if regions_of_trace(target.family) or checkpoints_of_trace(target.family):
            from queryprof.collect.recovery import save_left_recordings

            with muted():
                save_left_recordings(target.family)

    def has_recorded(self) -> bool:
        """Return whether anything was recorded."""
        return bool(self.parts.files()) or _core.has_recorded()

    def _end_of_worker(self) -> None:
        self.write_pending(is_end=True)

    def write_pending(self, is_end: bool = False) -> None:
        """Write pending figures to the tables. `is_end`: the process is about to end."""
        with self.exclusive, muted():
            if not self.is_on:
                return
            if self._meter and self._facts:
                self._meter.count()
                if is_end:
                    self._note_versions()
                    self._facts.add(unmeasured=unmeasured_modules(self.libraries.packages))
                self._facts.end(cell_names())
            if is_end:
                _core.mark_region_ended()
            else:
                _core.flush()

    def end_part(self) -> bool:
        """Move the recording so far to a file. Returns False if the file cannot be written."""
        with self.exclusive:
            self.write_pending()
            return self.is_on and _core.end_part()

    def end_reading_parts(self, place: tuple[int, int, int]) -> None:
        """Release the parts that `parts.begin_reading` kept when it returned `place`."""
        with self.exclusive:
            self.parts.end_reading(place)
            if not (self.is_on and self._target) and not self.parts.are_windows:
                self.parts.remove_unread()

    def end_of_process(self) -> None:
        """End the recording, if it belongs to this process. Never raises an Exception."""
        if os.getpid() != self._pid:
            return
        try:
            self.stop()
        except Exception as error:  # Python would print a traceback
            complain(f"ending the recording failed: {type(error).__name__}: {error}")

    def _before_fork(self) -> None:
        self.exclusive.__enter__()  # a child must not get half of another thread's start or end
        # Python 3.12 and newer warn about a fork if any other thread exists, even ours.
        if self.is_on:
            _core.watchdog_stop(STOP_TIMEOUT_S)

    def _after_fork_in_parent(self) -> None:
        try:
            if self.is_on and self.exclusive.is_mine:  # otherwise recording began during the fork
                _core.watchdog_start(self._stall_s)
        finally:
            self.exclusive.__exit__()

    def _after_fork_in_child(self) -> None:
        self.exclusive.reset()
        was_on = self.is_on
        _core.after_fork()
        if not self.is_on:
            if was_on:
                complain("a forked child is not recorded: not enough memory")
            return
        self.parts.forget_readers()
        try:
            self._begin_process()
            target = self._target
            if target and target.child_path:
                target.path = target.child_path()
                target.even_if_empty = False
                self._share_target(target)
            else:
                self._target = None
                self._share("", "", f"{temporary_directory()}/queryprof-{unix_ns()}")
            _core.watchdog_start(self._stall_s)
        except Exception as error:
            complain(f"a forked child is not recorded: {error}")


session = Session()
"""The session of this process."""
