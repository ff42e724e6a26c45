"""Which traces an argument of a command names: a file, those of a directory, those that match a
pattern; also of processes that still run and have written none.
"""

from __future__ import annotations

import glob
import os
from fnmatch import fnmatchcase

from queryprof.collect.output_path import without_process
from queryprof.collect.recovery import bring_in
from queryprof.errors import TraceError
from queryprof.region.identity import trace_of
from queryprof.region.region import opened_region
from queryprof.region.region_files import regions, resolved

EXTENSION = ".qprof"


def traces_of(argument: str) -> list[str]:
    """The paths of traces, sorted; what ended processes of a directory have left is brought in.

    Raises:
        TraceError: a directory has no traces, or a pattern matches none.
    """
    if os.path.isdir(argument):
        found = _matching(os.path.join(glob.escape(argument), f"*{EXTENSION}"))
        if not found:
            raise TraceError(f"{argument}: there are no traces (*{EXTENSION}) in this directory")
        return found
    if glob.has_magic(argument) and not os.path.lexists(argument):
        found = _matching(argument)
        if not found:
            raise TraceError(f"{argument}: no trace has such a name")
        return found
    return [argument]


def _matching(pattern: str) -> list[str]:
    directory = os.path.dirname(pattern)
    recorded = {one for one in _recorded() if fnmatchcase(one, resolved(pattern))}
    for family in {without_process(one) for one in recorded}:
        bring_in(family)
    living = recorded & set(_recorded())
    files = glob.glob(pattern)
    known = {resolved(one) for one in files}
    return sorted(
        [*files, *(os.path.join(directory, os.path.basename(one)) for one in living - known)]
    )


def _recorded() -> list[str]:
    """The traces of all regions of this user."""
    found = []
    for path in regions():
        try:
            with opened_region(path) as region:
                found.append(resolved(trace_of(region)))
        except (TraceError, ValueError):
            continue
    return found
