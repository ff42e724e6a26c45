"""The public functions, which a program calls to record itself."""

from __future__ import annotations

import os

from queryprof.autoload import running_program
from queryprof.collect.output_path import is_null, make_room, with_process
from queryprof.collect.target import Target
from queryprof.core.absence import is_absent
from queryprof.core.own_imports import own_imports
from queryprof.core.settings import read_settings, window_ns
from queryprof.recording import Recording
from queryprof.session import session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


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

    Does nothing when recording is on already; where a block is recorded (`profile`), it goes on
    after that, and what the block recorded before is in the trace, too. Where
    there is no core (another system than Linux) it says once that nothing is recorded.

    Raises:
        SettingsError: the settings of the working directory are invalid, or the window.
        TraceError: the file at `path` is no trace.
        SessionError: this process cannot be recorded.
    """
    if is_absent():
        return
    text = os.path.abspath(path or f"queryprof-{running_program()}-{os.getpid()}.qprof")

    with own_imports():
        length_ns = None if window is None else window_ns(window)
        settings = None if session.is_on else read_settings()
        if settings and length_ns is not None:
            settings.window_ns = length_ns

    def target() -> Target:
        replaces = not (settings and settings.window_ns)
        return Target(make_room(text, replaces), lambda: with_process(text))

    target_of_trace = None if is_null(text) else target
    if not session.start(settings, target=target_of_trace):
        session.adopt(target_of_trace)


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

    If the module does not have these types, a recorded program prints one line on stderr, and goes
    on.

    Raises:
        TypeError: the module itself is given, and not its name.
    """
    from queryprof.hooks.drivers.pep249 import named_driver
    from queryprof.hooks.libraries import DRIVERS

    if not isinstance(module, str):
        raise TypeError(f"instrument: module is the name of one, not {type(module).__name__}")
    if module in ("sqlite3", *DRIVERS) and cursors is None and connections is None:
        return
    session.libraries.add(named_driver(module, cursors, connections))


def profile(path: str | os.PathLike[str] | None = None) -> Recording:
    """Records a block: `with queryprof.profile("out.qprof") as p: ...`, then `p.report()`; in a
    notebook `p` alone shows it.

    Args:
        path: where to keep the trace; None keeps none.
    """
    return Recording(None if path is None else os.path.abspath(path))
