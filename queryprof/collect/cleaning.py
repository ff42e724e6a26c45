"""Save the recordings that ended processes left in shared memory to traces."""

from __future__ import annotations

import os
from dataclasses import dataclass

from queryprof.collect.recorded_files import RecordedFiles
from queryprof.collect.recovery import save_left_recordings
from queryprof.errors import TraceError
from queryprof.region.identity import region_trace_path
from queryprof.region.region import opened_region
from queryprof.region.region_files import is_living, readable_regions


@dataclass(frozen=True, slots=True)
class RegionLeft:
    """A region in shared memory whose process has ended.

    Attributes:
        trace: the path of its trace.
        used_bytes: the memory that it takes.
    """

    path: str
    trace: str
    used_bytes: int


def regions_left_behind() -> list[RegionLeft]:
    """Return the regions that this user's ended processes left.

    Processes in other containers cannot be checked, so their regions are not returned.
    """
    found = []
    for path in readable_regions():
        try:
            status = os.lstat(path)
            if status.st_uid != os.geteuid():
                continue  # root could read it, but leaves it to its user
            with opened_region(path) as region:
                if is_living(region) is False:
                    found.append(
                        RegionLeft(path, region_trace_path(region), status.st_blocks * 512)
                    )
        except (TraceError, OSError, ValueError):
            continue
    return found


def save_left_regions(found: list[RegionLeft]) -> list[str]:
    """Write each region's trace to the path that its process chose, and return the paths."""
    recorded = RecordedFiles()
    traces = dict.fromkeys(one.trace for one in found)
    return [path for trace in traces for path in save_left_recordings(trace, recorded)]
