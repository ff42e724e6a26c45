"""Limits for a process that executes SQL from strangers. It ends together with its parent.

This module uses only the standard library, because the process of planner/judge.py runs it under
the recorded program's interpreter.
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

MIN_MEMORY_BYTES = 1 << 30
MEMORY_SHARE = 0.5
"""Share of the machine's memory that the process may use in addition to its memory at the start. If
this share is smaller than MIN_MEMORY_BYTES, the process may use MIN_MEMORY_BYTES.
"""

PR_SET_PDEATHSIG = 1


def confine_process() -> None:
    """Limit this process's memory, and end it when the other end of its standard input is closed.

    The other end is closed when the process that holds it ends.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # immediately, whatever this process is doing
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_when_input_closes, name="queryprof watches", daemon=True).start()
    _lower_limit(resource.RLIMIT_CORE, 0)
    with suppress(OSError, ValueError, AttributeError):
        page = os.sysconf("SC_PAGE_SIZE")
        share = int(MEMORY_SHARE * page * os.sysconf("SC_PHYS_PAGES"))
        with open("/proc/self/statm") as file:
            mapped = page * int(file.read().split()[0])
        _lower_limit(resource.RLIMIT_AS, mapped + max(share, MIN_MEMORY_BYTES))


def limit_file_size(most_bytes: int) -> None:
    """Limit the size of files that this process writes. SQLite fails if a file would be larger."""
    _lower_limit(resource.RLIMIT_FSIZE, most_bytes)


def limit_cpu_time(most_s: float) -> None:
    """Limit the CPU time of this process from now on, in seconds."""
    _lower_limit(resource.RLIMIT_CPU, int(time.process_time() + most_s) + 1)


def _lower_limit(which: int, value: int) -> None:
    """Set a soft limit. The limit may be changed later, up to the hard limit."""
    _, hard = resource.getrlimit(which)
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(which, (wanted, hard))


def _end_when_input_closes() -> None:
    """End this process when its standard input is closed.

    Polling detects this without reading the input.
    """
    poll = select.poll()
    poll.register(0, 0)
    while not any(
        event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll()
    ):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
