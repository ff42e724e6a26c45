"""End the recordings of a command that was killed before it could end them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from queryprof.recorder.attaching import (
    AttachError,
    CannotSignalError,
    has_ended,
    open_process,
    request_answer,
)

GUARD_TIMEOUT_S = 24 * 3600.0
"""How long the guardian tries to end the remaining recordings."""

TRY_S, PAUSE_S = 2.0, 1.0
"""How long the guardian tries to end a recording, and how long it then pauses, so that other
commands can use the socket's name.
"""


class Guardian:
    """A process that ends the recordings if this command is killed.

    The command creates the guardian before it starts threads. The guardian process does not keep
    the command's streams open.
    """

    def __init__(self, pids: Sequence[int], runner: str) -> None:
        reads, self._writes = os.pipe()
        self._child = os.fork()
        if not self._child:
            try:
                os.close(self._writes)
                _wait_and_end_recordings(reads, pids, runner)
            finally:
                os._exit(0)
        os.close(reads)

    def end(self, is_all_ended: bool) -> None:
        """End the guardian at once, or let it end the remaining recordings first."""
        if is_all_ended:
            with suppress(BrokenPipeError):  # the guardian was killed
                os.write(self._writes, b"e")
        os.close(self._writes)
        if is_all_ended:
            os.waitpid(self._child, 0)


def _wait_and_end_recordings(reads: int, pids: Sequence[int], runner: str) -> None:
    """Wait for the end of the command, and end the remaining recordings."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    if os.read(reads, 1):
        return
    left = {}
    for pid in pids:
        with suppress(AttachError):
            left[pid] = open_process(pid)
    deadline_s = time.monotonic() + GUARD_TIMEOUT_S
    while left and time.monotonic() < deadline_s:
        for pid, pidfd in list(left.items()):
            if _end_recording(pid, pidfd, runner):
                del left[pid]
        time.sleep(PAUSE_S if left else 0)


def _end_recording(pid: int, pidfd: int, runner: str) -> bool:
    """End a recording. Returns whether the guardian has nothing more to do for the process."""
    try:
        request_answer(pid, pidfd, TRY_S, None, end=runner)
    except CannotSignalError:
        return True
    except AttachError:
        return has_ended(pidfd)
    return True
