"""Brings in what processes have left behind that ended without writing their traces: they were
killed, executed another program, or left by os._exit.
"""

from __future__ import annotations

import os
import sqlite3
from ast import literal_eval

from queryprof.errors import QueryprofError
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


def bring_in(path: str, most: int | None = None) -> list[int]:
    """Writes the traces of the dead of a family, each where its process would have: that of the
    process that began with `path`, and those of its children. Returns the ids of the processes.

    Never raises: what cannot be brought in stays for the next time.

    Args:
        most: processes to look at.
    """
    from queryprof.trace.keep import write_trace

    recovered = []
    path = os.path.abspath(path)
    for found in [*regions_of(path), *checkpoints_of(path)][:most]:
        try:
            with opened_region(found) as region:
                if is_living(region) is not False:
                    continue
                pid, trace = int(region["pid"]), _trace_of(region)
            files = [*parts_of(trace, pid), found]
            write_trace(trace, files, False, since_unix_ns=0, pid=pid)
        except (QueryprofError, OSError, ValueError, sqlite3.Error):
            continue
        remove([*files, checkpoint_of(trace, pid)])
        recovered.append(pid)
    return recovered


def living_regions(path: str) -> Iterator[Region]:
    """The regions of living processes whose trace shall be at `path`, with their parts first."""
    for found in regions_of(os.path.abspath(path)):
        try:
            with opened_region(found) as region:
                is_of_path = _trace_of(region) == os.path.abspath(path)
                if region.state == RECORDS and is_of_path and is_living(region) is not False:
                    for part in parts_of(os.path.abspath(path), int(region["pid"])):
                        with opened_region(part) as opened:
                            yield opened
                    yield region
        except (QueryprofError, ValueError):
            continue


def _trace_of(region: Region) -> str:
    """Where the process of a region would have written its trace. Raises ValueError."""
    try:
        trace = literal_eval(region.text(region["facts"]))["trace"]
    except (SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        raise ValueError("no facts") from error
    if not isinstance(trace, str) or not os.path.isabs(trace):
        raise ValueError("no path")
    return trace
