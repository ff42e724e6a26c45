"""Which traces an argument of a command names: a file, those of a directory, those that match a
pattern; also of processes that still run and have written none.
"""

from __future__ import annotations

import glob
import os
from contextlib import ExitStack
from fnmatch import fnmatchcase

from queryprof.collect.leftovers import Leftovers
from queryprof.collect.output_path import without_process
from queryprof.collect.recordings import recordings_at
from queryprof.collect.recovery import bring_in
from queryprof.errors import TraceError
from queryprof.region.identity import trace_of
from queryprof.region.part_names import trace_name
from queryprof.region.region import opened_region
from queryprof.region.region_files import (
    PART_SUFFIX,
    SHORT_NAME,
    names_in,
    nearby,
    regions,
    resolved,
)

EXTENSION = ".qprof"


def traces_of(argument: str) -> list[str]:
    """The paths of traces, those of a directory sorted; what ended processes have left there is
    brought in.

    Raises:
        TraceError: a directory has no traces, or a pattern matches none.
    """
    if os.path.isdir(argument):
        found = _matching(os.path.join(glob.escape(argument), f"*{EXTENSION}"))
        if not found:
            raise TraceError(f"{argument}: there are no traces (*{EXTENSION}) in this directory")
        return found
    if glob.has_magic(argument) and not _is_named(argument):
        found = _matching(argument)
        if not found:
            raise TraceError(f"{argument}: no trace has such a name")
        return found
    return [argument]


def _is_named(path: str) -> bool:
    """Whether there is a trace of this very name, or what processes record or have left of one."""
    return os.path.lexists(path) or _is_living(path) or Leftovers().may_be_of(path)


def _matching(pattern: str) -> list[str]:
    """The traces that a pattern matches: files, each once, and what processes have left of traces,
    or still record for them.
    """
    above, name = os.path.split(pattern)
    found: dict[str, str] = {}  # by the real path: a link beside its trace is the same
    for directory in glob.glob(above) if glob.has_magic(above) else [above]:
        all_recorded = {*_recorded(directory), *_in_windows(directory)}
        recorded = [one for one in all_recorded if fnmatchcase(os.path.basename(one), name)]
        # A name that ends in a number may be a process's, or what the first one was given.
        for family in {*recorded, *map(without_process, recorded)}:
            bring_in(family)
        files = glob.glob(os.path.join(glob.escape(directory), name))
        for one in sorted([*files, *filter(_is_living, recorded)]):
            if not one.endswith(PART_SUFFIX) and not os.path.isdir(one):
                found.setdefault(os.path.realpath(one), one)
    return list(found.values())


def _in_windows(directory: str) -> list[str]:
    """The traces in a directory that have parts there."""
    real = os.path.realpath(directory)
    found = {trace_name(name): name for name in sorted(names_in(real))}
    return [_trace_of_part(real, trace, part) for trace, part in found.items() if trace]


def _trace_of_part(directory: str, trace: str, part: str) -> str:
    """The path of a part's trace: of a long one, the part's name has the beginning alone."""
    path = os.path.join(directory, trace)
    if len(os.fsencode(trace)) < SHORT_NAME:
        return path
    try:
        with opened_region(os.path.join(directory, part)) as region:
            own = resolved(trace_of(region))
            return own if nearby(own) == path else path
    except (TraceError, ValueError):
        return path


def _recorded(directory: str) -> list[str]:
    """The traces in a directory that have regions: this user's, or its owner's."""
    found, real = [], os.path.realpath(directory)
    try:
        owners = {os.stat(real).st_uid, os.getuid()}
    except OSError:
        return []
    for path in regions():
        try:
            if os.lstat(path).st_uid in owners:
                with opened_region(path) as region:
                    trace = resolved(trace_of(region))
                    found += [trace] * (os.path.dirname(trace) == real)
        except (TraceError, ValueError, OSError):
            continue
    return found


def _is_living(path: str) -> bool:
    """Whether there is a process whose recording can be read in place of a file."""
    with ExitStack() as files:
        return not os.path.lexists(path) and bool(recordings_at(path, files))
