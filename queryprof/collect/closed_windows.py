"""The windows in a directory that have ended, as files: parts of recordings, and what killed
processes have left.

A file is listed when nothing else has what it holds: whoever takes it has these calls alone. That
is seen from the order in which a process works: it names a part, empties its region, and at its
end removes that. What moves a region to the disk makes the copy first.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field

from queryprof.collect.recovery import bring_in
from queryprof.errors import TraceError
from queryprof.region.identity import identity_of, trace_of
from queryprof.region.part_names import has_an_owner_of, part_number, trace_name
from queryprof.region.region import opened_region
from queryprof.region.region_files import (
    checkpoints_of,
    copies_in,
    is_living,
    names_in,
    nearby,
    regions,
    remove,
    resolved,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queryprof.region.region import Region
    from queryprof.trace.processes import Identity


@dataclass(frozen=True, slots=True)
class Window:
    """A file with what a process did in a window, or in a part of one.

    Attributes:
        goes_on: what was open at its end, a later one has.
    """

    path: str
    goes_on: bool = True


@dataclass(slots=True)
class _Recording:
    """The files of one process.

    Attributes:
        has_ended: its process, as its last part says.
        ended: how many parts had ended when its region, and each copy of it, was written.
        may_live: whether its process goes on in a region.
        copies: of its region, with what orders them: how many parts had ended, and the last turn.
    """

    parts: list[str] = field(default_factory=list)
    has_ended: bool = False
    ended: list[int] = field(default_factory=list)
    may_live: bool = False
    copies: list[tuple[tuple[int, int], str]] = field(default_factory=list)


def closed_windows(place: str) -> tuple[list[Window], list[str]]:
    """The files that can be taken, of recordings in windows alone; and why others cannot be read.

    Args:
        place: a directory in which processes record, or the path of a trace.
    """
    return _Search(place).closed()


def has_living(place: str) -> bool:
    """Whether a process that runs records in windows there."""
    return _Search(place).has_living()


class _Search:
    """Looks for the recordings of a place: what is in the directory is of it, also under another
    path than that at which it was recorded (a container's volume).
    """

    def __init__(self, place: str) -> None:
        is_whole = os.path.isdir(place)
        self._directory = os.path.realpath(place if is_whole else os.path.dirname(place) or ".")
        self._trace = None if is_whole else resolved(place)
        self._left_out: list[str] = []

    def closed(self) -> tuple[list[Window], list[str]]:
        """The files that can be taken, and why others cannot be read."""
        found: defaultdict[Identity, _Recording] = defaultdict(_Recording)
        before = set(self._parts())
        self._bring_to_the_disk()
        regions_of: defaultdict[Identity, list[int]] = defaultdict(list)
        for identity, region in self._opened(regions()):
            regions_of[identity].append(int(region["part_ended"]))
        for identity, copy in self._opened(self._copies()):
            recording = found[identity]
            order = int(copy["part_ended"]), int(copy["turn_unix_ns"])
            recording.copies.append((order, copy.path))
            recording.ended.append(int(copy["part_ended"]))
            recording.may_live |= is_living(copy) is not False
        for identity, part in self._opened(self._parts()):
            is_known = identity in found or identity in regions_of
            if is_known or part.path in before:  # else it has just begun
                recording = found[identity]
                recording.parts.append(part.path)
                recording.has_ended = is_living(part) is False
        for identity, recording in found.items():
            if identity in regions_of:
                recording.ended += regions_of[identity]
                recording.may_live = True  # if it was only left there, it is moved the next time
        return [one for some in found.values() for one in _closed(some)], self._left_out

    def has_living(self) -> bool:
        """Whether a process that runs records there."""
        return any(
            self._is_of(region) and is_living(region) for _, region in self._opened(regions())
        )

    def _parts(self) -> Iterator[str]:
        """The paths of parts, the oldest of a process first."""
        trace = os.path.basename(nearby(self._trace)) if self._trace else None
        named = [
            name
            for name in names_in(self._directory)
            if trace_name(name) and trace in (None, trace_name(name))
        ]
        for name in sorted(named, key=lambda one: (part_number(one), one)):
            path = os.path.join(self._directory, name)
            if has_an_owner_of(self._directory, path):
                yield path

    def _copies(self) -> list[str]:
        """The copies of regions."""
        return checkpoints_of(self._trace) if self._trace else copies_in(self._directory)

    def _bring_to_the_disk(self) -> None:
        """Moves what ended processes have left in the memory."""
        ended = {
            resolved(trace_of(region))
            for _, region in self._opened(regions())
            if self._is_of(region) and is_living(region) is False
        }
        for trace in sorted(ended):
            bring_in(trace)

    def _opened(self, paths: Iterable[str]) -> Iterator[tuple[Identity, Region]]:
        """Those of recordings in windows, each open until the next."""
        for path in paths:
            try:
                with opened_region(path) as region:
                    if region["window_ns"] and trace_of(region):
                        yield identity_of(region), region
            except (TraceError, ValueError) as error:
                if os.path.dirname(path) == self._directory and os.path.lexists(path):
                    self._left_out.append(str(error))

    def _is_of(self, region: Region) -> bool:
        """Whether a region in the memory is of a recording there."""
        trace = resolved(trace_of(region))
        is_in_it = not self._trace and os.path.dirname(trace) == self._directory
        return trace == self._trace or is_in_it


def _closed(recording: _Recording) -> Iterator[Window]:
    """What of a recording nothing goes on with."""
    if recording.may_live:
        # What a region or a copy holds may be in a later part, too: that stays for them to see.
        ended = min(recording.ended)
        yield from (Window(part) for part in recording.parts if part_number(part) <= ended)
        return
    copies = sorted(recording.copies)
    last_part = max(map(part_number, recording.parts), default=0)
    newest = copies.pop() if copies and last_part <= copies[-1][0][0] else None
    # Before the parts that have the same go: else it would count again.
    remove([path for _, path in copies])
    yield from (Window(part) for part in recording.parts[:-1])
    yield from (
        Window(part, newest is not None or not recording.has_ended) for part in recording.parts[-1:]
    )
    if newest:
        yield Window(newest[1], goes_on=False)
