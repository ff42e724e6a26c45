"""Which traces an argument of a command names: a file, those of a directory, those that match a
pattern; also of processes that still run and have written none.
"""

from __future__ import annotations

import glob
import os
from contextlib import ExitStack
from fnmatch import fnmatchcase

from queryprof.collect.collection import SUFFIX as COMMAND_SUFFIX
from queryprof.collect.leftovers import Leftovers
from queryprof.collect.output_path import without_process
from queryprof.collect.recorded_files import RecordedFiles
from queryprof.collect.recordings import recordings_at
from queryprof.collect.recovery import bring_in, taken_already
from queryprof.errors import TraceError
from queryprof.region.identity import trace_of
from queryprof.region.part_names import trace_name
from queryprof.region.region import opened_region
from queryprof.region.region_files import (
    PART_SUFFIX,
    SHORT_NAME,
    names_in,
    nearby,
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
            raise TraceError(f"{argument}: no traces (*{EXTENSION}) in this directory")
        return found
    if glob.has_magic(argument) and not _is_named(argument):
        found = _matching(argument)
        if not found:
            raise TraceError(f"{argument}: no trace has such a name")
        return found
    return [argument]


def _is_named(path: str) -> bool:
    """Whether there is a trace of this very name, or what processes record or have left of one."""
    return os.path.lexists(path) or Leftovers().may_be_of(path)


def _matching(pattern: str) -> list[str]:
    """The traces that a pattern matches: files, each once, and what processes have left of traces,
    or still record for them.
    """
    above, name = os.path.split(pattern)
    found: dict[object, str] = {}  # by file: a link beside its trace is the same
    recorded = RecordedFiles()
    for directory in glob.glob(above) if glob.has_magic(above) else [above]:
        everything = (
            *recorded.traces_in(directory),
            *_in_windows(directory),
            *_of_commands(directory),
        )
        traces = [one for one in set(everything) if fnmatchcase(os.path.basename(one), name)]
        # A name that ends in a number may be a process's, or what the first one was given.
        for family in {*traces, *map(without_process, traces)}:
            bring_in(family, recorded)
        files = glob.glob(os.path.join(glob.escape(directory), name))
        left = (one for one in traces if not os.path.lexists(one) and _is_recorded(one, recorded))
        for one in sorted([*files, *left]):
            if not one.endswith(PART_SUFFIX) and not os.path.isdir(one):
                found.setdefault(_file_of(one), one)
    return list(found.values())


def _file_of(path: str) -> object:
    """What is the same for all names of a file."""
    try:
        status = os.stat(path)
        return status.st_dev, status.st_ino
    except OSError:
        return os.path.realpath(path)


def _of_commands(directory: str) -> list[str]:
    """The traces in a directory that commands which run, or were killed, are to make."""
    real = os.path.realpath(directory)
    stems = [name.rpartition(".")[0] for name in names_in(real) if name.endswith(COMMAND_SUFFIX)]
    return [os.path.join(real, stem.rpartition(".")[0]) for stem in stems if "." in stem]


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


def _is_recorded(path: str, recorded: RecordedFiles) -> bool:
    """Whether there is what can be read in place of a file, or named."""
    unread: list[str] = []
    with ExitStack() as files:
        if recordings_at(path, files, recorded, unread) or unread:
            return True
    return bool(taken_already(path))
