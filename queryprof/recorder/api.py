"""The public functions, which a program calls to record itself."""

from __future__ import annotations

import os

from queryprof.collect.output_path import is_null_device, path_with_process, prepare_output_path
from queryprof.collect.target import TraceTarget
from queryprof.core.absence import is_core_absent
from queryprof.core.own_imports import own_imports
from queryprof.core.settings import parse_window_ns, read_settings
from queryprof.recorder.autoload import running_program
from queryprof.recorder.recording import Recording
from queryprof.recorder.session import session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def install(path: str | os.PathLike[str] | None = None, *, window: str | None = None) -> None:
    """Record to a trace file until `uninstall` or the end of the process.

    Does nothing if recording is already on. If a block is being recorded (`profile`), recording
    continues after the block, and the trace includes the block. On systems other than Linux, this
    prints once that nothing is recorded.

    Args:
        path: the trace. An old trace is replaced, unless another process still writes to it: then
            this process's id is added to the name. The default is queryprof-PROGRAM-PID.qprof in
            the working directory. Forked children write next to the trace, with their process id in
            the name. With /dev/null, no trace is written.
        window: "5m", "15m", "1h", "6h" or "1d". Instead of a trace, write a file for each interval
            of this length (UTC) next to the trace's path, and keep the latest 48 (QUERYPROF_KEEP).
            `queryprof report` reads the files together. The default is QUERYPROF_WINDOW.

    Raises:
        SettingsError: the settings of the working directory, or the window, are invalid.
        TraceError: the file at `path` is not a trace.
        SessionError: this process cannot be recorded.
    """
    if is_core_absent():
        return
    text = os.path.abspath(path or f"queryprof-{running_program()}-{os.getpid()}.qprof")

    with own_imports():
        length_ns = None if window is None else parse_window_ns(window)
        settings = None if session.is_on else read_settings()
        if settings and length_ns is not None:
            settings.window_ns = length_ns

    def target() -> TraceTarget:
        replaces = not (settings and settings.window_ns)
        return TraceTarget(prepare_output_path(text, replaces), lambda: path_with_process(text))

    target_of_trace = None if is_null_device(text) else target
    if not session.start(settings, target=target_of_trace):
        session.continue_to_trace(target_of_trace)


def uninstall() -> None:
    """Stop recording, restore every type and function, and close the trace."""
    session.stop()


def is_installed() -> bool:
    """Return whether this process is being recorded."""
    return session.is_on


def instrument(
    module: str,
    *,
    cursors: Sequence[str] | None = None,
    connections: Sequence[str] | None = None,
) -> None:
    """Measure an additional DB-API (PEP 249) driver in this process.

    Drivers that are measured by default (APSW, psycopg, ...) need not be named. Naming them has no
    effect, unless you name types as well. If the module lacks these types, a recorded program
    prints one line on stderr and continues.

    Args:
        module: its name as the program imports it. It may be imported later.
        cursors: dotted names, inside the module, of its cursor types ("cursors.Cursor"). By
            default, queryprof tries the usual names.
        connections: dotted names of its connection types, in the same way.

    Raises:
        TypeError: `module` is the module itself instead of its name.
    """
    from queryprof.hooks.drivers.pep249 import named_driver
    from queryprof.hooks.libraries import DRIVERS

    if not isinstance(module, str):
        raise TypeError(f"instrument: module must be a name, not {type(module).__name__}")
    if module in ("sqlite3", *DRIVERS) and cursors is None and connections is None:
        return
    session.libraries.add(named_driver(module, cursors, connections))


def profile(path: str | os.PathLike[str] | None = None) -> Recording:
    """Record a block: `with queryprof.profile("out.qprof") as p: ...`, then `p.report()`.

    In a notebook, `p` alone shows the recording.

    Args:
        path: where to keep the trace; None to keep no trace.
    """
    return Recording(None if path is None else os.path.abspath(path))
