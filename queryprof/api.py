"""The public functions, which a program calls to record itself."""

from __future__ import annotations

import os
from time import time_ns

from queryprof.autoload import running_program
from queryprof.collect.output_path import is_null, make_room, with_process
from queryprof.collect.target import Target
from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import complain, muted
from queryprof.core.settings import read_settings, window_ns
from queryprof.errors import SessionError
from queryprof.session import session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self, TextIO

    from queryprof.model import Profile


def install(path: str | os.PathLike[str] | None = None, *, window: str | None = None) -> None:
    """Records from now on, until `uninstall` or the end of the process, to a trace file.

    Args:
        path: the trace; an old trace there is replaced, unless another process still writes to
            it: then this one's id is in the name. By default queryprof-PROGRAM-PID.qprof in the
            working directory. Forked children write beside it, with their process id in the
            name. /dev/null: no trace is written.
        window: "5m", "15m", "1h", "6h" or "1d": no trace is written, but a file beside its place
            for each such part of the day (UTC), of which the latest 48 are kept (QUERYPROF_KEEP);
            `queryprof report` reads them together. By default as QUERYPROF_WINDOW is set.

    Does nothing when recording is on already.

    Raises:
        SettingsError: the settings of the working directory are invalid, or the window.
        TraceError: the file at `path` is no trace.
        SessionError: this process cannot be recorded.
    """
    text = os.path.abspath(path or f"queryprof-{running_program()}-{os.getpid()}.qprof")

    with own_imports():
        length_ns = None if window is None else window_ns(window)
        settings = None if session.is_on else read_settings()
        if settings and length_ns is not None:
            settings.window_ns = length_ns

    def target() -> Target:
        replaces = not (settings and settings.window_ns)
        return Target(make_room(text, replaces), lambda: with_process(text))

    session.start(settings, target=None if is_null(text) else target)


def uninstall() -> None:
    """Stops recording, puts every type and function back, and closes the trace."""
    session.stop()


def is_installed() -> bool:
    """Whether this process is being recorded."""
    return session.is_on


def instrument(
    module: str,
    *,
    cursors: Sequence[str] | None = None,
    connections: Sequence[str] | None = None,
) -> None:
    """Measures one more DB-API (PEP 249) driver, from now on in this process.

    Args:
        module: its name as the program imports it; it may be imported later.
        cursors, connections: the dotted names, inside the module, of the types that cursors and
            connections have ("cursors.Cursor"). By default they are looked for where drivers
            usually keep them.

    A driver that is measured without this call (APSW, psycopg, ...) need not be named, and naming
    it changes nothing, unless types of it are named, too.

    Raises:
        DriverError: recording is on, the module is imported, and does not have these types.
        TypeError: the module itself is given, and not its name.
    """
    from queryprof.hooks.drivers.pep249 import named_driver
    from queryprof.hooks.libraries import DRIVERS

    if not isinstance(module, str):
        raise TypeError(f"instrument: module is the name of one, not {type(module).__name__}")
    if module in ("sqlite3", *DRIVERS) and cursors is None and connections is None:
        return
    session.libraries.add(named_driver(module, cursors, connections))


class Recording:
    """A recording of one block of code, as `profile` returns it.

    Attributes:
        path: the trace file; None: no trace is kept.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._started_session = False
        self._is_recording = False
        self._part_before = 0  # its number
        self._since_unix_ns = 0
        self._profile: Profile | None = None

    def __enter__(self) -> Self:
        if self._is_recording or self._profile is not None:
            raise SessionError("a recording is used once; make another with queryprof.profile()")
        with session.exclusive, own_imports():
            settings = None if session.is_on else read_settings()
            if self.path is not None:
                self.path = None if is_null(self.path) else make_room(self.path)
            self._started_session = session.start(settings)
            if not self._started_session and not session.end_part():
                raise SessionError(
                    "what was recorded before cannot be put aside: no file can be made"
                )
            self._part_before = session.parts.last()
            self._since_unix_ns = time_ns()
            session.begin_reading_parts()
            self._is_recording = True
        return self

    def __exit__(self, *exc_info: object) -> None:
        if not self._is_recording:
            return
        self._is_recording = False
        with session.exclusive:
            try:
                self._load()
            except SessionError as error:
                if exc_info[0] is None:
                    raise
                complain(f"the recorded block is lost: {error}")  # the program's own error counts
            finally:
                session.end_reading_parts()
        if self._started_session:
            session.stop()

    def _load(self) -> None:
        own = self._started_session and session.is_on
        if own:
            session.settle()
        elif session.is_on and not session.end_part():
            raise SessionError("the recording cannot be loaded: no file can be made")
        with muted(), own_imports():
            self._profile = self._read(session.parts.after(self._part_before), own)

    def _read(self, parts: list[str], own: bool) -> Profile:
        from queryprof.collect.keep import add_all, write_trace
        from queryprof.collect.reader import profile_of, read_profile
        from queryprof.trace.store import TraceStore

        if self.path is not None:
            since_ns, is_block = self._since_unix_ns, not self._started_session
            self.path = write_trace(self.path, parts, own, since_ns, is_block=is_block)
            return read_profile(self.path)
        store = TraceStore(":memory:")
        try:
            began = 0 if self._started_session else self._since_unix_ns
            add_all(store, parts, own, since_unix_ns=began)
            return profile_of(store.connection)
        finally:
            store.close()

    @property
    def profile(self) -> Profile:
        """The profile of the block. Raises SessionError before it has ended."""
        if self._profile is None:
            raise SessionError("the recorded block has not ended yet")
        return self._profile

    def report(self, file: TextIO | None = None, top: int = 10) -> None:
        """Prints the ranked report to `file` (standard output)."""
        with own_imports():
            from queryprof.analysis.report import Report
            from queryprof.findings import findings_of
            from queryprof.report.terminal.report import print_report

            report = Report(self.profile, top=top)
            with muted():  # it reads the schema of the program's databases
                findings = findings_of(report, with_planner=False)
            print_report(report, file, findings=findings)


def profile(path: str | os.PathLike[str] | None = None) -> Recording:
    """Records a block: `with queryprof.profile("out.qprof") as p: ...`, then `p.report()`.

    Args:
        path: where to keep the trace; None keeps none.
    """
    return Recording(None if path is None else os.path.abspath(path))
