"""The recordings for a trace's path that are not in the trace file.

These belong to running processes. Recordings in windows also count after their process has ended,
because their parts stay.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from queryprof.collect.collection import command_directories_of_trace
from queryprof.collect.output_path import path_without_process
from queryprof.collect.part_files import parts_cover_region, parts_of_process
from queryprof.collect.recorded_files import RecordedFiles
from queryprof.collect.recovery import sort_newest_first, traces_of_process
from queryprof.errors import TraceError
from queryprof.region.identity import region_identity, region_trace_path
from queryprof.region.part_names import part_number, parts_by_process, parts_of_trace
from queryprof.region.region import ENDED, PART, Region, opened_region
from queryprof.region.region_files import (
    PART_SUFFIX,
    checkpoints_of_trace,
    is_living,
    regions_of_trace,
    resolve_directory,
)
from queryprof.trace.processes import identities_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import ExitStack

    from queryprof.trace.processes import Identity


class MovedError(TraceError):
    """A recording's files changed while they were read, or another process took them."""


class ProcessRecording(NamedTuple):
    """The recording of one process.

    Attributes:
        parts: the paths of its parts, oldest first.
        region: the region in which it continues, or in which it was killed; None after the end of
            the process, when the last part is written.
        is_region_in_parts: whether a part contains the same calls as the region.
        left_out: one line for each reason why parts cannot be read.
        seen: the region's counts of begun and ended parts when the parts were listed.
    """

    identity: Identity
    is_in_windows: bool
    parts: list[str]
    region: Region | None
    is_region_in_parts: bool
    left_out: tuple[str, ...]
    seen: tuple[int, int]

    @property
    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self.region is not None and bool(is_living(self.region))

    @property
    def is_beside_its_trace(self) -> bool:
        """Whether a trace at the recording's path may lack this recording."""
        return self.is_in_windows or (self.region is not None and is_living(self.region) is False)

    def regions(self, passes_moved: bool = False) -> Iterator[Region]:
        """Yield the recording's parts, each open until the next one, and its region.

        Args:
            passes_moved: skip missing parts. A process removes its oldest parts, and sent parts are
                removed as well.

        Raises:
            TraceError: a part cannot be read.
            MovedError: a part is missing.
        """
        continues = self.region is not None and not self.is_region_in_parts
        for place, path in enumerate(self.parts, 1):
            try:
                part = Region(path=path)
                part.continues = continues or place < len(self.parts)
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
        if continues and self.region is not None:
            yield self.region

    def refuse_changes(self) -> None:
        """Raise MovedError if a part has begun or ended since the parts were listed."""
        if self.region is not None:
            self.region.read_head()
            is_between = self.region["part_begun"] != self.region["part_ended"]
            if _part_counts(self.region) != self.seen or (is_between and self.is_running):
                raise MovedError(
                    f"{self.region.path}: the recording kept changing while being read; try again"
                )


def _part_counts(region: Region) -> tuple[int, int]:
    return region["part_begun"], region["part_ended"]


def recordings_at(
    path: str,
    files: ExitStack,
    recorded: RecordedFiles | None = None,
    unread: list[str] | None = None,
) -> list[ProcessRecording]:
    """Return the recordings of processes whose trace belongs at `path`.

    These are recordings of running processes, recordings in windows, and recordings that could not
    be saved. If there is no trace at `path`, they include recordings of processes that may be
    running.

    Args:
        files: keeps the regions open, because another process may remove them.
        recorded: a snapshot, when many traces are read.
        unread: collects why regions and parts of unknown processes cannot be read.
    """
    unread = [] if unread is None else unread
    found: dict[Identity, ProcessRecording] = {}
    for region in _candidate_regions(path, recorded or RecordedFiles()):
        files.callback(region.close)
        try:
            identity = region_identity(region)
            if identity not in found and _belongs_to_path(region, path, identity):
                parts = parts_of_trace(region_trace_path(region), identity[0])
                found[identity] = _process_recording(identity, parts, region)
        except (TraceError, ValueError) as error:
            unread.append(_error_with_path(region.path, error))
    for collection in command_directories_of_trace(path):
        for one in collection.regions:
            try:
                region = Region(path=one)
                files.callback(region.close)
                identity = region_identity(region)
                if region.state != PART and identity not in found:
                    found[identity] = _process_recording(identity, collection.parts(region), region)
            except (TraceError, ValueError) as error:
                unread.append(_error_with_path(one, error))
    for parts in parts_by_process(resolve_directory(path)):
        for ended in _recording_in_windows(parts, unread):
            found.setdefault(ended.identity, ended)
    return list(found.values())


def _error_with_path(path: str, error: Exception) -> str:
    reason = str(error)
    return reason if reason.startswith(path) else f"{path}: {reason}"


def _process_recording(identity: Identity, paths: list[str], region: Region) -> ProcessRecording:
    parts, unsound = parts_of_process(paths, identity)
    left_out = _missing_parts_reasons(parts, unsound.values()) if region["window_ns"] else ()
    is_region_in_parts = parts_cover_region(parts, region)
    is_in_windows = bool(region["window_ns"])
    return ProcessRecording(
        identity, is_in_windows, parts, region, is_region_in_parts, left_out, _part_counts(region)
    )


def _missing_parts_reasons(parts: list[str], unsound: Iterable[str]) -> tuple[str, ...]:
    """Return why parts of a recording in windows are missing.

    They cannot be read, or there is a gap between the part numbers.
    """
    numbers = [part_number(part) for part in parts]
    missing = numbers[-1] - numbers[0] + 1 - len(numbers) if numbers else 0
    reasons = list(unsound)
    gone = missing - len(reasons)
    if gone > 0:
        reasons.append(f"{gone:,} {'part is' if gone == 1 else 'parts are'} missing")
    return tuple(reasons)


def _candidate_regions(path: str, recorded: RecordedFiles) -> Iterator[Region]:
    """Open and yield the regions and copies that may belong to processes of a trace."""
    # A region's file name contains the hash of the first process's trace path. A child's own trace
    # path is only in the region's content.
    families = dict.fromkeys((path, path_without_process(path)))
    regions = [region for one in families for region in regions_of_trace(one)]
    copies = [*_copies_of_families(families), *recorded.copies_of(path)]
    moved = False
    for found in dict.fromkeys([*regions, *recorded.regions_of(path), *_newest_first(copies)]):
        try:
            yield Region(path=found)
        except TraceError:
            moved = moved or not os.path.lexists(found)
    if moved:  # another process has copied a region to the disk since
        for found in _newest_first(_copies_of_families(families)):
            with suppress(TraceError):
                yield Region(path=found)


def _copies_of_families(families: Iterable[str]) -> list[str]:
    return [copy for one in families for copy in checkpoints_of_trace(one)]


def _newest_first(copies: list[str]) -> list[str]:
    return sort_newest_first(list(dict.fromkeys(copies)))


def _belongs_to_path(region: Region, path: str, identity: Identity) -> bool:
    """Return whether a region belongs to a recording at this path that is in no trace."""
    if not _is_of_trace(region, path):
        return False
    if region["window_ns"]:
        return True
    lives = is_living(region)
    if lives is None and os.path.exists(path):
        return False
    # The process has written its trace or is about to. If it was killed, another process may have
    # written the trace.
    may_be_written = region.state == ENDED or lives is False
    written = traces_of_process(path, identity[0]) if may_be_written else []
    return not any(identity in identities_in(one) for one in written)


def _is_of_trace(region: Region, path: str) -> bool:
    """Return whether a region belongs to the trace at a path. Copies may be in a moved
    directory.
    """
    trace, wanted = resolve_directory(region_trace_path(region)), resolve_directory(path)
    if trace == wanted:
        return True
    is_copy = region.path.endswith(PART_SUFFIX)
    beside = os.path.dirname(resolve_directory(region.path)) == os.path.dirname(wanted)
    return is_copy and beside and os.path.basename(trace) == os.path.basename(wanted)


def _recording_in_windows(paths: list[str], unread: list[str]) -> Iterator[ProcessRecording]:
    """Yield the recording that consists of parts with one prefix, if it is in windows."""
    reasons = []
    for path in paths:
        try:
            with opened_region(path) as part:
                identity, is_in_windows = region_identity(part), bool(part["window_ns"])
        except TraceError as error:
            reasons.append(str(error))
            continue  # the other parts name the process
        if is_in_windows:
            parts, unsound = parts_of_process(paths, identity)
            left_out = _missing_parts_reasons(parts, unsound.values())
            yield ProcessRecording(identity, True, parts, None, False, left_out, (0, 0))
        return
    unread += reasons
