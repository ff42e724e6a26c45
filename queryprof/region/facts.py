"""Write the facts about a recorded process, at the beginning and at the end of its recording."""

from __future__ import annotations

import os
import sys
import time

from queryprof.core import _core
from queryprof.core.process_io import PROCESS, peak_memory_bytes, read_io_bytes
from queryprof.core.user_code import working_directory
from queryprof.core.wall_clock import unix_ns
from queryprof.region.command_line import without_values
from queryprof.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queryprof.trace.processes import Identity


class Facts:
    """The facts about this process.

    Args:
        keeps_values: keep values on the command line, as with --parameters.
        deployment: service, version and environment.
    """

    def __init__(self, keeps_values: bool, deployment: Mapping[str, str | None]) -> None:
        clock, tick_ns = _core.clock_source()
        arguments: list[str] = list(getattr(sys, "orig_argv", []))
        directory = working_directory()
        self._known: dict[str, object] = {
            "host": os.uname().nodename if hasattr(os, "uname") else "",
            "arguments": arguments if keeps_values else without_values(arguments, directory),
            "directory": directory,
            "python_version": sys.version.split()[0],
            "sqlite_version": "",
            "queryprof_version": __version__,
            "clock": clock,
            "rows_estimated": int(clock == "monotonic clock"),
            "clock_tick_ns": None if clock == "monotonic clock" else tick_ns,
            "counters_off": None,
            "files_off": None,
            "unmeasured": None,
            "operations": _core.operation_names(),
            **deployment,
        }
        self._io: tuple[int, int] | None = None

    @property
    def identity(self) -> Identity:
        """The identity of this process's recording."""
        known = self._known
        return int(str(known["pid"])), int(str(known["start_unix_ns"])), str(known["host"])

    def begin(self, cells: Mapping[str, str]) -> None:
        """Write the facts at the beginning of the recording.

        Args:
            cells: names of a notebook's cells, by the files of their code.
        """
        # Read this clock first. The thread may be preempted before it reads the other clock, and
        # the recording must not seem to end before its last call.
        self._began_ns = _since_start_ns()
        self._known |= {
            "start_unix_ns": unix_ns(),
            "pid": os.getpid(),
            "parent_pid": os.getppid(),
            "end_unix_ns": 0,
            "read_bytes": None,
            "written_bytes": None,
            "peak_memory_bytes": None,
            "cells": dict(cells),
        }
        self._io = read_io_bytes(PROCESS)
        _core.set_recording_facts(repr(self._known))

    def add(self, **further: object) -> None:
        """Add facts."""
        self._known |= further
        _core.set_recording_facts(repr(self._known))

    def end(self, cells: Mapping[str, str]) -> None:
        """Write the facts at the end of the process or recording; `cells` as in `begin`."""
        now = read_io_bytes(PROCESS)
        start_ns = int(str(self._known["start_unix_ns"]))
        end_ns = start_ns + _since_start_ns() - self._began_ns  # the wall clock may have been set
        self._known |= {
            "end_unix_ns": end_ns,
            "cells": dict(cells),
            "peak_memory_bytes": peak_memory_bytes(),
        }
        if now and self._io:
            self._known["read_bytes"] = now[0] - self._io[0]
            self._known["written_bytes"] = now[1] - self._io[1]
        _core.set_recording_facts(repr(self._known))


def _since_start_ns() -> int:
    """Return the nanoseconds since the machine started, including sleep.

    Only Linux has this clock (clock_gettime(2)), and this module is also imported on other systems.
    """
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
