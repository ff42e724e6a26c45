"""Start and stop the measuring core.

Other modules attach the probes and save the recordings.
"""

from __future__ import annotations

import os
import sys

from queryprof.core import _core
from queryprof.core.held_signals import came_from_handler
from queryprof.core.process_io import address_space_left
from queryprof.core.user_code import code_prefixes, is_typed_in, working_directory
from queryprof.errors import SessionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.core.settings import Settings

PLANS_SHARE = 1 / 64
"""The largest share of the program's time that queryprof may spend on reading query plans."""


MIN_ADDRESS_SPACE = 128 << 20
"""Minimum free address space in bytes. A recording takes 66 MB at its start (the C library reserves
64 MB for the recording's thread), and must leave about as much for the program.
"""


class muted:
    """A context in which this thread's queries are not recorded."""

    def __enter__(self) -> None:
        self._before = _core.set_muted(True)

    def __exit__(self, *exc_info: object) -> None:
        _core.set_muted(self._before)


STDERR = 2


def _stderr_file() -> tuple[int, int, int] | None:
    """Return the identity of the file behind descriptor 2; None if the descriptor is closed."""
    try:
        status = os.fstat(STDERR)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_rdev


_stderr_at_start = _stderr_file()


def complain(message: str) -> None:
    """Write one line to stderr in the program's process; never raises.

    Writes nothing if the program has closed descriptor 2 and opened another file with this number.
    """
    stream = sys.stderr
    try:
        if stream.fileno() == STDERR and _stderr_file() != _stderr_at_start:
            return
    except Exception as error:  # a stream in memory has no descriptor
        if came_from_handler(error):
            raise
    try:
        stream.write(f"queryprof: {message}\n")
    except Exception as error:  # no stderr (a service, a closed terminal)
        if came_from_handler(error):
            raise


def start_core(settings: Settings) -> None:
    """Start the core.

    Raises:
        SessionError: there is no GIL, which the core needs to serialize calls; or there is too
            little address space.
    """
    if absent := vars(_core).get("ABSENCE"):
        raise SessionError(absent)
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise SessionError(
            "this Python runs without its global interpreter lock, so concurrent calls would be"
            " miscounted; set PYTHON_GIL=1 to record them"
        )
    left = address_space_left()
    if left is not None and left < MIN_ADDRESS_SPACE:
        raise SessionError(
            f"the address space limit (ulimit -v) leaves {left >> 20} MiB, and recording takes 64"
            f" MiB, which the program might need; raise the limit to leave"
            f" {MIN_ADDRESS_SPACE >> 20} MiB or more"
        )
    _core.start(settings.parameters)
    _core.set_plan_time_share(PLANS_SHARE if settings.plans else 0.0)
    _core.configure(
        code_prefixes(settings.roots), settings.call_path_frames, working_directory(), is_typed_in()
    )
    _core.set_recent_calls(settings.recent_calls)
    most_bytes, _, prefix = settings.workload.partition(":")
    if prefix and most_bytes.isdecimal():
        _core.set_workload_prefix(prefix, int(most_bytes))
