"""What the threads of this process use, as Linux counts it: CPU time, context switches, bytes and
system calls that read and write (proc_pid_stat(5), proc_pid_status(5), proc_pid_io(5)).

Read from /proc directly: psutil has the CPU times alone for a thread, and no library enters the
profiled program. Elsewhere nothing is known.
"""

from __future__ import annotations

import os
import sys
from _thread import get_native_id

from queryprof.core import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    Usage = tuple[int, int, int, int, int, int, int, int]
    """(user_ns, system_ns, voluntary switches, involuntary switches, read_bytes, written_bytes,
    read calls, write calls)"""

TASKS = "/proc/self/task"
OWN_THREAD = "queryprof"
OWN_NAME = "(queryprof)"
"""What queryprof's native threads are called, and shown as: what they use is its own."""

THREADS_READ = 512
"""With more threads, the others are left out."""


class ThreadMeter:
    """Tells what each thread has used since it was last asked; from its making on."""

    def __init__(self) -> None:
        self._known = {thread: usage for thread, _, usage in _read_threads()}
        self._vanished: dict[int, Usage] = {}
        """What threads that are no longer there had used, until what they used at their end comes."""
        self._ended: list[_core.EndedThreadRow] = []
        self._own_before: tuple[int, Usage] | None = None

    def add_ended(self, rows: list[_core.EndedThreadRow]) -> None:
        """Takes note of threads that have ended."""
        self._ended += rows

    def begin_own_work(self) -> None:
        """What the calling thread uses from here to `end_own_work` is queryprof's."""
        self._own_before = _read_own()

    def end_own_work(self) -> None:
        """Leaves that out of what the calling thread has used."""
        before, after = self._own_before, _read_own()
        self._own_before = None
        if before and after and before[0] == after[0] and before[0] in self._known:
            known, at_begin, at_end = self._known[before[0]], before[1], after[1]
            self._known[before[0]] = tuple(
                k + end - begin for k, begin, end in zip(known, at_begin, at_end, strict=True)
            )  # type: ignore[assignment]

    def take(self) -> dict[str, list[int]]:
        """By thread name: the sums of Usage since the last taking; ended threads included."""
        used: dict[str, list[int]] = {}
        now = _read_threads()
        counted = {**self._vanished, **self._known}
        for thread, name, usage in (*self._ended, *now):
            before = counted.get(thread)
            if before is None or _ticks(usage) < _ticks(before):
                before = (0, 0, 0, 0, 0, 0, 0, 0)  # a new thread with an old one's number
            sums = used.setdefault(name, [0] * len(usage))
            for place, value in enumerate(usage):
                sums[place] += max(0, value - before[place])
            counted[thread] = usage  # a thread that ends may be there still
        living = {thread for thread, _, _ in now}
        ended = {thread for thread, _, _ in self._ended}
        self._vanished = {
            thread: usage
            for thread, usage in self._known.items()
            if thread not in living and thread not in ended
        }
        self._known = {thread: usage for thread, _, usage in now}
        self._ended.clear()
        return used


def _ticks(usage: Usage) -> int:
    """CPU time in whole ticks, as /proc tells it: what a thread has used at its end is exact, and
    may be told before the thread is gone from there.
    """
    tick_ns = _tick_ns()
    return usage[0] // tick_ns + usage[1] // tick_ns


def _tick_ns() -> int:
    return 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def _read_threads() -> list[tuple[int, str, Usage]]:
    """(the system's number, name, usage) of the living threads; nothing where there is no /proc."""
    try:
        numbers = os.listdir(TASKS)[:THREADS_READ]
    except OSError:
        return []
    names = _names()
    found = []
    for number in numbers:
        try:
            found.append((int(number), *_read_thread(number, names.get(int(number)))))
        except (OSError, ValueError, IndexError):
            continue  # it has ended, or this kernel tells less
    return found


def _read_own() -> tuple[int, Usage] | None:
    """The calling thread's number and usage; None: it is queryprof's own, or nothing is known."""
    number = get_native_id()
    try:
        name, usage = _read_thread(str(number), None)
    except (OSError, ValueError, IndexError):
        return None
    return None if name == OWN_NAME else (number, usage)


def _read_thread(number: str, name: str | None) -> tuple[str, Usage]:
    stat = _read(f"{TASKS}/{number}/stat")
    command, _, rest = stat.partition(b") ")
    fields = rest.split()
    tick_ns = _tick_ns()
    switches = [
        int(line.split()[1])
        for line in _read(f"{TASKS}/{number}/status").splitlines()
        if b"ctxt_switches" in line
    ]
    io = [int(line.split()[1]) for line in _read(f"{TASKS}/{number}/io").splitlines()[:4]]
    if name is None:
        own = command.partition(b"(")[2].decode("utf-8", "replace")
        name = OWN_NAME if own == OWN_THREAD else "(native thread)"
    return name, (
        int(fields[11]) * tick_ns, int(fields[12]) * tick_ns, switches[0], switches[1], *io,
    )  # type: ignore[return-value]  # fmt: skip


def _names() -> dict[int, str]:
    """The names by which `threading` knows the threads, by the system's numbers."""
    threading = sys.modules.get("threading")
    if threading is None:
        return {os.getpid(): "MainThread"}
    # Not enumerate(), which waits for a lock that the program may hold.
    return {
        thread._native_id: thread._name  # noqa: SLF001 the properties may be the program's
        for thread in list(threading._active.values())  # noqa: SLF001
        if isinstance(getattr(thread, "_native_id", None), int)
    }


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(4096)
