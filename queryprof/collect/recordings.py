"""The recordings at the path of a trace that are in no trace: of processes that run, and those in
windows, whose parts stay when their process has ended.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from queryprof.collect.collection import beside_trace
from queryprof.collect.output_path import without_process
from queryprof.collect.part_files import has_all, of_process
from queryprof.collect.recorded_files import RecordedFiles
from queryprof.collect.recovery import newest_first, traces_of_process
from queryprof.errors import TraceError
from queryprof.region.identity import identity_of, trace_of
from queryprof.region.part_names import part_number, parts_in_reach, parts_of
from queryprof.region.region import ENDED, PART, Region, opened_region
from queryprof.region.region_files import (
    PART_SUFFIX,
    checkpoints_of,
    is_living,
    regions_of,
    resolved,
)
from queryprof.trace.processes import identities_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import ExitStack

    from queryprof.trace.processes import Identity


class MovedError(TraceError):
    """A file of a recording has gone: it has gone on, or another process has taken it."""


class ProcessRecording(NamedTuple):
    """The recording of one process.

    Attributes:
        parts: the paths of its parts, the oldest first.
        region: in which it goes on, or went on until it was killed; None: it has ended, and its
            last part is there.
        is_in_parts: what the region holds is in a part, too.
        left_out: why parts cannot be read, a line each.
        seen: what its region said of parts when they were looked for.
    """

    identity: Identity
    is_in_windows: bool
    parts: list[str]
    region: Region | None
    is_in_parts: bool
    left_out: tuple[str, ...]
    seen: tuple[int, int]

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self.region is not None and bool(is_living(self.region))

    @property
    def is_beside_its_trace(self) -> bool:
        """Whether there may be a trace at its path with what is not in it."""
        return self.is_in_windows or (self.region is not None and is_living(self.region) is False)

    def regions(self, passes_moved: bool = False) -> Iterator[Region]:
        """Its parts, each open until the next one, and its region.

        Args:
            passes_moved: one that has gone is passed over: its process keeps the latest alone, or
                it was sent.

        Raises:
            TraceError: a part cannot be read.
            MovedError: it has gone.
        """
        goes_on = self.region is not None and not self.is_in_parts
        for place, path in enumerate(self.parts, 1):
            try:
                part = Region(path=path)
                part.goes_on = goes_on or place < len(self.parts)
            except TraceError as error:
                if os.path.lexists(path):
                    raise
                if passes_moved:
                    continue
                raise MovedError(str(error)) from error
            try:
                yield part
            finally:
                part.close()
        if goes_on and self.region is not None:
            yield self.region

    def refuse_changes(self) -> None:
        """Raises MovedError: a part was begun or ended since the parts were looked for."""
        if self.region is not None:
            self.region.read_head()
            is_between = self.region["part_begun"] != self.region["part_ended"]
            if _seen(self.region) != self.seen or (is_between and self.is_running):
                raise MovedError(f"{self.region.path}: parts of it end all the time")


def _seen(region: Region) -> tuple[int, int]:
    return region["part_begun"], region["part_ended"]


def recordings_at(
    path: str,
    files: ExitStack,
    recorded: RecordedFiles | None = None,
    unread: list[str] | None = None,
) -> list[ProcessRecording]:
    """The recordings of processes whose trace is to be at `path`, and that live, record in windows,
    or have left what could not be brought in. Without a trace there, those of processes that may
    live, too.

    Args:
        files: keeps their regions open, for another process may remove them.
        recorded: what is looked up for many traces.
        unread: gets why regions and parts cannot be read where no other one says whose they are.
    """
    unread = [] if unread is None else unread
    found: dict[Identity, ProcessRecording] = {}
    for region in _regions(path, recorded or RecordedFiles()):
        files.callback(region.close)
        try:
            identity = identity_of(region)
            if identity not in found and _belongs(region, path, identity):
                parts = parts_of(trace_of(region), identity[0])
                found[identity] = _recording(identity, parts, region)
        except (TraceError, ValueError) as error:
            unread.append(_named(region.path, error))
    for collection in beside_trace(path):
        for one in collection.regions:
            try:
                region = Region(path=one)
                files.callback(region.close)
                identity = identity_of(region)
                if region.state != PART and identity not in found:
                    found[identity] = _recording(identity, collection.parts(region), region)
            except (TraceError, ValueError) as error:
                unread.append(_named(one, error))
    for parts in parts_in_reach(resolved(path)):
        for ended in _in_windows(parts, unread):
            found.setdefault(ended.identity, ended)
    return list(found.values())


def _named(path: str, error: Exception) -> str:
    reason = str(error)
    return reason if reason.startswith(path) else f"{path}: {reason}"


def _recording(identity: Identity, paths: list[str], region: Region) -> ProcessRecording:
    parts, unsound = of_process(paths, identity)
    left_out = _left_out(parts, unsound.values()) if region["window_ns"] else ()
    is_in_parts = has_all(parts, region)
    is_in_windows = bool(region["window_ns"])
    return ProcessRecording(
        identity, is_in_windows, parts, region, is_in_parts, left_out, _seen(region)
    )


def _left_out(parts: list[str], unsound: Iterable[str]) -> tuple[str, ...]:
    """What is missing of a recording in windows: parts that cannot be read, or are not there
    between others.
    """
    numbers = [part_number(part) for part in parts]
    missing = numbers[-1] - numbers[0] + 1 - len(numbers) if numbers else 0
    reasons = list(unsound)
    gone = missing - len(reasons)
    if gone > 0:
        reasons.append(f"{gone:,} {'part is' if gone == 1 else 'parts are'} not there")
    return tuple(reasons)


def _regions(path: str, recorded: RecordedFiles) -> Iterator[Region]:
    """The open regions and their copies that may be of processes of a trace."""
    # A process's regions are found by the path of the first one's trace, or by what is in them.
    families = dict.fromkeys((path, without_process(path)))
    regions = [region for one in families for region in regions_of(one)]
    copies = [copy for one in families for copy in checkpoints_of(one)]
    of_content = recorded.copies_of(path)
    ordered = newest_first(list(dict.fromkeys([*copies, *of_content])))
    for found in dict.fromkeys([*regions, *recorded.regions_of(path), *ordered]):
        try:
            yield Region(path=found)
        except TraceError:
            continue


def _belongs(region: Region, path: str, identity: Identity) -> bool:
    """Whether a region is of a recording at this path that is in no trace."""
    if not _is_of(region, path):
        return False
    if region["window_ns"]:
        return True
    lives = is_living(region)
    if lives is None and os.path.exists(path):
        return False
    # It has written its trace, or is about to; or another process has, for one that was killed.
    may_be_written = region.state == ENDED or lives is False
    written = traces_of_process(path, identity[0]) if may_be_written else []
    return not any(identity in identities_in(one) for one in written)


def _is_of(region: Region, path: str) -> bool:
    """Whether a region is of the trace at a path: a copy also where its directory was moved."""
    trace, wanted = resolved(trace_of(region)), resolved(path)
    if trace == wanted:
        return True
    is_copy = region.path.endswith(PART_SUFFIX)
    beside = os.path.dirname(resolved(region.path)) == os.path.dirname(wanted)
    return is_copy and beside and os.path.basename(trace) == os.path.basename(wanted)


def _in_windows(paths: list[str], unread: list[str]) -> Iterator[ProcessRecording]:
    """The recording of parts with one prefix, if it is in windows."""
    reasons = []
    for path in paths:
        try:
            with opened_region(path) as part:
                identity, is_in_windows = identity_of(part), bool(part["window_ns"])
        except TraceError as error:
            reasons.append(str(error))
            continue  # one of the others says whose they are
        if is_in_windows:
            parts, unsound = of_process(paths, identity)
            left_out = _left_out(parts, unsound.values())
            yield ProcessRecording(identity, True, parts, None, False, left_out, (0, 0))
        return
    unread += reasons
