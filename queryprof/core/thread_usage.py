"""CPU time, context switches, and bytes read and written of this process's threads, as counted by
Linux (proc_pid_stat(5), proc_pid_status(5), proc_pid_io(5)).

This module reads /proc directly, because psutil has only CPU times of threads, and because
queryprof imports no libraries into the profiled program. On other systems the usage is unknown.
Threads that end record their usage themselves (thread_usage.h).
"""

from __future__ import annotations

import os
import sys

from queryprof.core import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    Usage = tuple[int, int, int, int, int, int, int, int]
    """(user_ns, system_ns, voluntary switches, involuntary switches, read_bytes, written_bytes,
    read calls, write calls)"""

TASKS = "/proc/self/task"
OWN_THREAD = "queryprof"
OWN_NAME = "(queryprof)"
"""The name of queryprof's native threads, also in reports. Their usage belongs to the profiler."""

THREADS_READ = 512
"""Maximum number of threads whose usage is read."""

NOTHING: Usage = (0, 0, 0, 0, 0, 0, 0, 0)


class ThreadMeter:
    """Measures the usage of each living thread since the last call of `count`, or since the meter
    was created.
    """

    def __init__(self) -> None:
        self._known = {thread: usage for thread, _, usage in _read_threads()}

    def count(self) -> None:
        """Add each thread's usage since the last call to the recorded usage of its name."""
        now = _read_threads()
        for thread, name, usage in now:
            _core.count_thread_usage(thread, name, usage, self._known.get(thread, NOTHING))
        self._known = {thread: usage for thread, _, usage in now}


def _tick_ns() -> int:
    return 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def _read_threads() -> list[tuple[int, str, Usage]]:
    """Return (kernel id, name, usage) of each living thread; [] without /proc."""
    try:
        numbers = os.listdir(TASKS)[:THREADS_READ]
    except OSError:
        return []
    names = _thread_names()
    found = []
    for number in numbers:
        try:
            found.append((int(number), *_read_thread(number, names.get(int(number)))))
        except (OSError, ValueError, IndexError):
            continue  # the thread has ended, or this kernel shows fewer values
    return found


def _read_thread(number: str, name: str | None) -> tuple[str, Usage]:
    stat = _read_proc_file(f"{TASKS}/{number}/stat")
    command, _, rest = stat.partition(b") ")
    fields = rest.split()
    tick_ns = _tick_ns()
    switches = [
        int(line.split()[1])
        for line in _read_proc_file(f"{TASKS}/{number}/status").splitlines()
        if b"ctxt_switches" in line
    ]
    io = [int(line.split()[1]) for line in _read_proc_file(f"{TASKS}/{number}/io").splitlines()[:4]]
    if name is None:
        own = command.partition(b"(")[2].decode("utf-8", "replace")
        name = OWN_NAME if own == OWN_THREAD else "(native thread)"
    return name, (
        int(fields[11]) * tick_ns,
        int(fields[12]) * tick_ns,
        switches[0],
        switches[1],
        *io,
    )  # type: ignore[return-value]


def _thread_names() -> dict[int, str]:
    """Return the names of the threads in `threading`, by kernel id."""
    threading = sys.modules.get("threading")
    if threading is None:
        return {os.getpid(): "MainThread"}
    # Not threading.enumerate(): it waits for a lock that the program may hold.
    return {
        thread._native_id: thread._name  # noqa: SLF001 the properties may be the program's
        for thread in list(threading._active.values())  # noqa: SLF001
        if isinstance(getattr(thread, "_native_id", None), int)
    }


def _read_proc_file(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(4096)
