"""Read the CPU time and I/O of recorded processes' threads per second, from another process.

(proc_pid_stat(5), proc_pid_io(5))
"""

from __future__ import annotations

import os
from collections import defaultdict

from queryprof.region.region import Region

WIDTH_NS = 1_000_000_000
"""The length of an interval."""

TASK = (
    "thread",
    "kernel_id",
    "base_user_ns",
    "base_system_ns",
    "base_read_bytes",
    "base_written_bytes",
)
"""The region's columns of a running thread, with its usage before the recording."""

Used = tuple[int, int, int]
"""(CPU time in ns, bytes read, bytes written)."""


class ThreadTimes:
    """Collects the usage of each thread in intervals of WIDTH_NS."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Used] = {}
        self._names: dict[tuple[int, int], str] = {}
        self._intervals: dict[int, dict[tuple[int, int], list[int]]] = defaultdict(dict)
        self._last_ns: dict[int, int] = {}

    def record_usage(self, region: Region, now_ns: int) -> None:
        """Add the usage of the threads of a region's process since the last call."""
        pid = int(region["pid"])
        threads = [number for (number,) in region.rows("threads", ("name",))]
        for thread, kernel_id, user_ns, system_ns, *io in region.rows("tasks", TASK):
            if kernel_id and thread < len(threads):
                if (pid, kernel_id) not in self._names:
                    self._begin(pid, kernel_id, (user_ns + system_ns, io[0], io[1]))
                self._names[pid, kernel_id] = region.text(threads[thread])
        start_ns = self._last_ns.get(pid, now_ns) // WIDTH_NS * WIDTH_NS
        self._last_ns[pid] = now_ns
        for thread in _thread_ids(pid):
            used = _resources_used(pid, thread)
            if used is not None:
                before = self._known.get((pid, thread), (0, 0, 0))
                sums = self._intervals[pid].setdefault((thread, start_ns), [0, 0, 0])
                for place in range(len(used)):
                    sums[place] += max(0, used[place] - before[place])
                self._known[pid, thread] = used

    def _begin(self, pid: int, thread: int, base: Used) -> None:
        """Subtract a thread's usage before the recording, and drop its earlier intervals."""
        if any(base):
            self._known[pid, thread] = base
            intervals = self._intervals[pid]
            for key in [key for key in intervals if key[0] == thread]:
                del intervals[key]

    def rows(self, pid: int) -> list[tuple[str, int, int, int, int]]:
        """Return and clear the intervals of a process.

        An interval is (thread's name, start_unix_ns, cpu_ns, read_bytes, written_bytes).
        """
        return [
            (self._names[pid, thread], start_ns, cpu_ns, read, written)
            for (thread, start_ns), (cpu_ns, read, written) in self._intervals.pop(pid, {}).items()
            if (cpu_ns or read or written) and (pid, thread) in self._names
        ]


def _thread_ids(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _resources_used(pid: int, thread: int) -> Used | None:
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open(f"/proc/{pid}/task/{thread}/io", "rb") as file:
            io = file.read().split()
        ticks = int(fields[11]) + int(fields[12])
        return ticks * WIDTH_NS // os.sysconf("SC_CLK_TCK"), int(io[1]), int(io[3])
    except (OSError, ValueError, IndexError):
        return None  # the thread has ended
