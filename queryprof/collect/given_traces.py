"""Find the traces for a command argument: a file, a directory or a pattern.

Processes that still run count even if they have not written a trace.
"""

from __future__ import annotations

import glob
import os
from contextlib import ExitStack, suppress
from fnmatch import fnmatchcase

from queryprof.collect.collection import SUFFIX as COMMAND_SUFFIX
from queryprof.collect.leftovers import LeftRecordings
from queryprof.collect.output_path import path_without_process
from queryprof.collect.recorded_files import RecordedFiles
from queryprof.collect.recordings import recordings_at
from queryprof.collect.recovery import save_left_recordings, traces_made_so_far
from queryprof.errors import TraceError
from queryprof.region.identity import region_trace_path
from queryprof.region.live import DAMAGED
from queryprof.region.part_names import trace_name
from queryprof.region.region import opened_region
from queryprof.region.region_files import (
    PART_SUFFIX,
    SHORT_NAME_BYTES,
    is_living,
    list_names,
    readable_regions,
    resolve_directory,
    temporary_stem,
)

EXTENSION = ".qprof"


def traces_for_argument(argument: str) -> list[str]:
    """Return the paths of the traces, sorted for a directory.

    Saves the recordings that ended processes left there.

    Raises:
        TraceError: a directory has no traces, or a pattern matches no trace.
    """
    if os.path.isdir(argument):
        found = _matching_traces(os.path.join(glob.escape(argument), f"*{EXTENSION}"))
        if not found:
            raise TraceError(f"{argument}: no traces (*{EXTENSION}) in this directory")
        return found
    if glob.has_magic(argument) and not _trace_exists(argument):
        found = _matching_traces(argument)
        if not found:
            raise TraceError(f"{argument}: no trace matches this pattern")
        return found
    return [argument]


def traces_of_running_processes(pid: int | None = None) -> list[str]:
    """Return the paths of the traces of this user's running processes, or of the process `pid`. The
    traces may not have been written yet.
    """
    found: dict[str, None] = {}
    for path in readable_regions(pids=None if pid is None else {pid}):
        with suppress(*DAMAGED), opened_region(path) as region:
            if is_living(region) and pid in (None, region["pid"]):
                found[region_trace_path(region)] = None
    return list(found)


def _trace_exists(path: str) -> bool:
    """Return whether there is a trace with exactly this name, or a recording for it."""
    return os.path.lexists(path) or LeftRecordings().may_have_recordings_of(path)


def _matching_traces(pattern: str) -> list[str]:
    """Return the traces that a pattern matches.

    These are files, each once, and traces for which there are only recordings.
    """
    above, name = os.path.split(pattern)
    found: dict[object, str] = {}  # keyed by file: links to the same trace count once
    recorded = RecordedFiles()
    for directory in glob.glob(above) if glob.has_magic(above) else [above]:
        everything = (
            *recorded.traces_in(directory),
            *_traces_in_windows(directory),
            *_traces_of_commands(directory),
        )
        traces = [one for one in set(everything) if fnmatchcase(os.path.basename(one), name)]
        # A name that ends in a number may be a child's name, or the first process's own name.
        for family in {*traces, *map(path_without_process, traces)}:
            save_left_recordings(family, recorded)
        files = glob.glob(os.path.join(glob.escape(directory), name))
        left = (one for one in traces if not os.path.lexists(one) and _is_recorded(one, recorded))
        for one in sorted([*files, *left]):
            if not one.endswith(PART_SUFFIX) and not os.path.isdir(one):
                found.setdefault(_file_key(one), one)
    return list(found.values())


def _file_key(path: str) -> object:
    """Return a key that is the same for all names of a file."""
    try:
        status = os.stat(path)
        return status.st_dev, status.st_ino
    except OSError:
        return os.path.realpath(path)


def _traces_of_commands(directory: str) -> list[str]:
    """Return the traces in a directory that commands will write, including killed commands."""
    real = os.path.realpath(directory)
    stems = [name.rpartition(".")[0] for name in list_names(real) if name.endswith(COMMAND_SUFFIX)]
    return [os.path.join(real, stem.rpartition(".")[0]) for stem in stems if "." in stem]


def _traces_in_windows(directory: str) -> list[str]:
    """Return the traces in a directory that have parts there."""
    real = os.path.realpath(directory)
    found = {trace_name(name): name for name in sorted(list_names(real))}
    return [_trace_of_part(real, trace, part) for trace, part in found.items() if trace]


def _trace_of_part(directory: str, trace: str, part: str) -> str:
    """Return the path of a part's trace. The names of parts have only the start of a long name."""
    path = os.path.join(directory, trace)
    if len(os.fsencode(trace)) < SHORT_NAME_BYTES:
        return path
    try:
        with opened_region(os.path.join(directory, part)) as region:
            own = resolve_directory(region_trace_path(region))
            return own if temporary_stem(own) == path else path
    except (TraceError, ValueError):
        return path


def _is_recorded(path: str, recorded: RecordedFiles) -> bool:
    """Return whether there are recordings at a path, readable or not."""
    unread: list[str] = []
    with ExitStack() as files:
        if recordings_at(path, files, recorded, unread) or unread:
            return True
    return bool(traces_made_so_far(path))
