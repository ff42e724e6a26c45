"""A process that executes SQL of strangers: it has limits, and ends with the process that has
started it.

This module uses nothing but the standard library: the judge runs it under the interpreter of the
recorded program.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import threading
import time
from contextlib import suppress

LEAST_MEMORY_BYTES = 1 << 30
MEMORY_SHARE = 0.5
"""Of the machine's memory, beside what the process has mapped when it begins."""

PR_SET_PDEATHSIG = 1


def confine() -> None:
    """Bounds the memory of this process, and ends it when the other end of its standard input is
    closed, as it is when the process that holds it ends.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # at once, and whatever this process is doing
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_with_input, name="queryprof watches", daemon=True).start()
    _lower(resource.RLIMIT_CORE, 0)
    with suppress(OSError, ValueError, AttributeError):
        page = os.sysconf("SC_PAGE_SIZE")
        share = int(MEMORY_SHARE * page * os.sysconf("SC_PHYS_PAGES"))
        with open("/proc/self/statm") as file:
            mapped = page * int(file.read().split()[0])
        _lower(resource.RLIMIT_AS, mapped + max(share, LEAST_MEMORY_BYTES))


def limit_files(most_bytes: int) -> None:
    """A file that this process writes may have so many bytes; more is an error of SQLite's."""
    _lower(resource.RLIMIT_FSIZE, most_bytes)


def limit_time(most_s: float) -> None:
    """So much time of a processor may pass from now on."""
    _lower(resource.RLIMIT_CPU, int(time.process_time() + most_s) + 1)


def _lower(which: int, value: int) -> None:
    """Sets a soft limit: it may be set again, but not above what the process was given."""
    _, hard = resource.getrlimit(which)
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(which, (wanted, hard))


def _end_with_input() -> None:
    """Standard input is not read here: that it is closed can be seen beside who reads it."""
    poll = select.poll()
    poll.register(0, 0)
    while not any(
        event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll()
    ):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
