"""Brings in what processes have left behind that ended without writing their traces: they were
killed, executed another program, or left by os._exit.
"""

from __future__ import annotations

import os
import sqlite3

from queryprof.errors import QueryprofError
from queryprof.trace.convert import facts_of
from queryprof.trace.region import RECORDS, Region, opened_region
from queryprof.trace.regions import (
    checkpoint_of,
    checkpoints_of,
    is_living,
    parts_of,
    regions_of,
    remove,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


MOVED = 2
"""Regions that `put_aside` moves."""


def bring_in(path: str) -> list[int]:
    """Writes the traces of the dead of a family, each where its process would have: that of the
    process that began with `path`, and those of its children. Returns the ids of the processes.

    Never raises: what cannot be brought in stays for the next time.
    """
    from queryprof.trace.keep import write_trace
    from queryprof.trace.place import beside, is_written

    recovered = []
    path = os.path.abspath(path)
    for found in [*regions_of(path), *checkpoints_of(path)]:
        try:
            with opened_region(found) as region:
                if is_living(region) is not False:
                    continue
                pid, trace = int(region["pid"]), trace_of(region)
            files = [*parts_of(trace, pid), found]
            free = beside(trace, pid) if is_written(trace) else trace
            write_trace(free, files, False, since_unix_ns=0, pid=pid)
        except (QueryprofError, OSError, ValueError, sqlite3.Error):
            continue
        remove([*files, checkpoint_of(path, pid)])
        recovered.append(pid)
    return recovered


def living_regions(path: str) -> Iterator[Region]:
    """The regions of living processes whose trace shall be at `path`, with their parts first."""
    for found in regions_of(os.path.abspath(path)):
        try:
            with opened_region(found) as region:
                is_of_path = trace_of(region) == os.path.abspath(path)
                if region.state == RECORDS and is_of_path and is_living(region) is not False:
                    for part in parts_of(os.path.abspath(path), int(region["pid"])):
                        with opened_region(part) as opened:
                            yield opened
                    yield region
        except (QueryprofError, ValueError):
            continue


def trace_of(region: Region) -> str:
    """Where the process of a region would have written its trace. Raises ValueError."""
    trace = facts_of(region).get("trace")
    if not isinstance(trace, str) or not os.path.isabs(trace):
        raise ValueError("no path")
    return trace


def put_aside(paths: list[str], family: str) -> None:
    """Moves the regions of the dead of a family, two of them at the most, from the memory to the disk: a program
    that forks children which leave by os._exit would fill it. Never raises.
    """
    moved = 0
    for found in sorted(paths, key=_changed_ns):
        try:
            with opened_region(found) as region:
                if moved == MOVED or is_living(region) is not False:
                    continue
                target = checkpoint_of(family, int(region["pid"]))
            _copy(found, target)
        except (QueryprofError, OSError, ValueError):
            continue
        remove([found])
        moved += 1


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _copy(path: str, target: str) -> None:
    """Copies a file of which most is not there, to a new one."""
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            size, at = os.fstat(source).st_size, 0
            os.truncate(copy, size)
            while at < size:
                try:
                    at = os.lseek(source, at, os.SEEK_DATA)
                except OSError:  # there is nothing more
                    break
                end = os.lseek(source, at, os.SEEK_HOLE)
                os.pwrite(copy, os.pread(source, end - at, at), at)
                at = end
        finally:
            os.close(copy)
    finally:
        os.close(source)
