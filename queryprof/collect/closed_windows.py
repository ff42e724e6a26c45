"""Find the ended windows in a directory: parts of recordings, and regions of killed processes.

A file is listed only if no other file contains the same calls. This is possible because a process
works in a fixed order: it names a part, then empties its region, and at its end removes the region.
When a region moves to the disk, the copy is made before the region is removed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field

from queryprof.collect.recovery import save_left_recordings
from queryprof.errors import TraceError
from queryprof.region.identity import region_identity, region_trace_path
from queryprof.region.part_names import is_owned_as_directory, part_number, trace_name
from queryprof.region.region import IncompleteError, opened_region
from queryprof.region.region_files import (
    checkpoints_in,
    checkpoints_of_trace,
    is_living,
    list_names,
    readable_regions,
    remove_files,
    resolve_directory,
    temporary_stem,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queryprof.region.region import Region
    from queryprof.trace.processes import Identity


@dataclass(frozen=True, slots=True)
class Window:
    """A file with the calls of a process in a window, or in a part of a window.

    Attributes:
        continues: whether a later file has the executions that were unfinished at the end of this
            file.
    """

    path: str
    continues: bool = True


@dataclass(slots=True)
class _Recording:
    """The files of one process.

    Attributes:
        has_ended: whether the process no longer ran when its last part was read.
        ended: for the region, and for each copy of it, the number of parts that had ended when it
            was written.
        may_live: whether the process may still record into a region.
        copies: a sort key and the path of each copy of the region. The key is the number of ended
            parts, and the last time at which the process was alive (Unix time in ns).
    """

    parts: list[str] = field(default_factory=list)
    has_ended: bool = False
    ended: list[int] = field(default_factory=list)
    may_live: bool = False
    copies: list[tuple[tuple[int, int], str]] = field(default_factory=list)


def closed_windows(place: str) -> tuple[list[Window], list[str]]:
    """Return the windows that can be merged and removed, and why other files cannot be read.

    Only recordings in windows count.

    Args:
        place: a directory in which processes record, or the path of a trace.
    """
    return _WindowSearch(place).closed_windows()


def has_recording_process(place: str) -> bool:
    """Return whether a running process records in windows; for `place` see closed_windows."""
    return _WindowSearch(place).has_living()


class _WindowSearch:
    """Find the recordings in a directory.

    Paths inside recordings may differ, for example when a container's volume is mounted elsewhere.
    """

    def __init__(self, place: str) -> None:
        is_whole = os.path.isdir(place)
        self._directory = os.path.realpath(place if is_whole else os.path.dirname(place) or ".")
        self._trace = None if is_whole else resolve_directory(place)
        self._unreadable: list[str] = []

    def closed_windows(self) -> tuple[list[Window], list[str]]:
        """Return the windows that can be taken, and why other files cannot be read."""
        found: defaultdict[Identity, _Recording] = defaultdict(_Recording)
        before = set(self._parts())
        self._save_ended_regions()
        regions_of: defaultdict[Identity, list[int]] = defaultdict(list)
        for identity, region in self._opened(readable_regions()):
            regions_of[identity].append(int(region["part_ended"]))
        for identity, copy in self._opened(self._copies()):
            recording = found[identity]
            order = int(copy["part_ended"]), int(copy["alive_unix_ns"])
            recording.copies.append((order, copy.path))
            recording.ended.append(int(copy["part_ended"]))
            recording.may_live |= is_living(copy) is not False
        for identity, part in self._opened(self._parts()):
            is_known = identity in found or identity in regions_of
            if is_known or part.path in before:  # otherwise the recording has just begun
                recording = found[identity]
                recording.parts.append(part.path)
                recording.has_ended = is_living(part) is False
        for identity, recording in found.items():
            if identity in regions_of:
                recording.ended += regions_of[identity]
                # an ended process's region is moved to the disk next time
                recording.may_live = True
        return [
            one for some in found.values() for one in _closed_windows_of(some)
        ], self._unreadable

    def has_living(self) -> bool:
        """Return whether a running process records in windows in this directory."""
        return any(
            self._belongs_here(region) and is_living(region)
            for _, region in self._opened(readable_regions())
        )

    def _parts(self) -> Iterator[str]:
        """Yield the paths of parts; the parts of each process are in order."""
        trace = os.path.basename(temporary_stem(self._trace)) if self._trace else None
        named = [
            name
            for name in list_names(self._directory)
            if trace_name(name) and trace in (None, trace_name(name))
        ]
        for name in sorted(named, key=lambda one: (part_number(one), one)):
            path = os.path.join(self._directory, name)
            if is_owned_as_directory(self._directory, path):
                yield path

    def _copies(self) -> list[str]:
        """Return the copies of regions."""
        return checkpoints_of_trace(self._trace) if self._trace else checkpoints_in(self._directory)

    def _save_ended_regions(self) -> None:
        """Move the regions of ended processes from memory to the disk."""
        ended = {
            resolve_directory(region_trace_path(region))
            for _, region in self._opened(readable_regions())
            if self._belongs_here(region) and is_living(region) is False
        }
        for trace in sorted(ended):
            save_left_recordings(trace)

    def _opened(self, paths: Iterable[str]) -> Iterator[tuple[Identity, Region]]:
        """Yield the regions of recordings in windows. Each region stays open until the next."""
        for path in paths:
            try:
                with opened_region(path) as region:
                    if region["window_ns"] and region_trace_path(region):
                        yield region_identity(region), region
            except IncompleteError:
                continue  # the process has the same figures in memory
            except (TraceError, ValueError) as error:
                if os.path.dirname(path) == self._directory and os.path.lexists(path):
                    self._unreadable.append(str(error))

    def _belongs_here(self, region: Region) -> bool:
        """Return whether a region in memory belongs to this directory, or to this trace."""
        trace = resolve_directory(region_trace_path(region))
        is_in_it = not self._trace and os.path.dirname(trace) == self._directory
        return trace == self._trace or is_in_it


def _closed_windows_of(recording: _Recording) -> Iterator[Window]:
    """Yield the files of a recording whose calls are in no other file."""
    if recording.may_live:
        # A later part may repeat what a region or a copy holds. Such parts stay, so that readers of
        # the region see them.
        ended = min(recording.ended)
        yield from (Window(part) for part in recording.parts if part_number(part) <= ended)
        return
    copies = sorted(recording.copies)
    last_part = max(map(part_number, recording.parts), default=0)
    newest = copies.pop() if copies and last_part <= copies[-1][0][0] else None
    # Remove older copies before parts with the same calls are taken. Otherwise the calls count
    # twice.
    remove_files([path for _, path in copies])
    yield from (Window(part) for part in recording.parts[:-1])
    yield from (
        Window(part, newest is not None or not recording.has_ended) for part in recording.parts[-1:]
    )
    if newest:
        yield Window(newest[1], continues=False)
