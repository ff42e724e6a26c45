"""What ended processes left in shared memory: it is brought into their traces, or removed."""

from __future__ import annotations

import os
from dataclasses import dataclass

from queryprof.collect.recorded_files import RecordedFiles
from queryprof.collect.recovery import bring_in
from queryprof.errors import TraceError
from queryprof.region.identity import trace_of
from queryprof.region.region import claimed_region, opened_region
from queryprof.region.region_files import is_living, regions


@dataclass(frozen=True, slots=True)
class Left:
    """A region that a process which has ended left.

    Attributes:
        trace: the path of its trace.
        used_bytes: of memory.
    """

    path: str
    trace: str
    used_bytes: int


def left_behind() -> list[Left]:
    """What this user's processes of this place have left: one in another container may live."""
    found = []
    for path in regions():
        try:
            status = os.lstat(path)
            if status.st_uid != os.geteuid():
                continue  # root sees those of all users, who have their own commands
            with opened_region(path) as region:
                if is_living(region) is False:
                    found.append(Left(path, trace_of(region), status.st_blocks * 512))
        except (TraceError, OSError, ValueError):
            continue
    return found


def bring_all_in(found: list[Left]) -> list[str]:
    """Writes the traces of what is left, where their processes would have; returns their paths."""
    recorded = RecordedFiles()
    traces = dict.fromkeys(one.trace for one in found)
    return [path for trace in traces for path in bring_in(trace, recorded)]


def discard(found: list[Left]) -> list[Left]:
    """Removes what is left, for good; returns what was removed."""
    removed = []
    for one in found:
        try:
            with claimed_region(one.path) as region:
                if region is not None and is_living(region) is False:
                    os.unlink(one.path)
                    removed.append(one)
        except (TraceError, OSError):
            continue  # another one was faster
    return removed
