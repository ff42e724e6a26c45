"""Regions, and copies of regions, by the trace that their content names.

Their file names contain the trace of the first process. A child's own trace is only in the content.
"""

from __future__ import annotations

import os

from queryprof.core.absence import absence_reason
from queryprof.errors import TraceError
from queryprof.region.identity import region_trace_path
from queryprof.region.region import opened_region
from queryprof.region.region_files import checkpoints_in, readable_regions, resolve_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class RecordedFiles:
    """Snapshot of the regions and copies, made once for all traces of a directory."""

    def __init__(self) -> None:
        self._regions: dict[str, list[str]] | None = None
        self._copies: dict[str, dict[str, list[str]]] = {}  # by directory

    def forget(self) -> None:
        """Forget the snapshot, for example when a region was copied."""
        self._regions = None
        self._copies.clear()

    def regions_of(self, path: str) -> list[str]:
        """Return the regions of the trace at `path`, owned by this user or by the directory's
        owner.
        """
        return self._all_regions().get(resolve_directory(path), [])

    def copies_of(self, path: str) -> list[str]:
        """Return the copies of regions in the directory of the trace at `path`.

        The directory may have moved since the copies were made.
        """
        directory, name = os.path.split(resolve_directory(path))
        return self._copies_in(directory).get(name, [])

    def traces_in(self, directory: str) -> list[str]:
        """Return the paths of the traces in a directory that have regions or copies."""
        real = os.path.realpath(directory)
        named = [trace for trace in self._all_regions() if os.path.dirname(trace) == real]
        return [*named, *(os.path.join(real, name) for name in self._copies_in(real))]

    def _all_regions(self) -> dict[str, list[str]]:
        if self._regions is None:
            owners: dict[str, set[int]] = {}
            self._regions = {}
            for path, trace in () if absence_reason() else _files_with_traces(readable_regions()):
                directory = os.path.dirname(trace)
                if directory not in owners:
                    owners[directory] = {os.getuid(), _owner_id(directory)}
                if _owner_id(path) in owners[directory]:
                    self._regions.setdefault(trace, []).append(path)
        return self._regions

    def _copies_in(self, directory: str) -> dict[str, list[str]]:
        if directory not in self._copies:
            found: dict[str, list[str]] = {}
            for path, trace in (
                () if absence_reason() else _files_with_traces(checkpoints_in(directory))
            ):
                found.setdefault(os.path.basename(trace), []).append(path)
            self._copies[directory] = found
        return self._copies[directory]


def _files_with_traces(paths: Iterable[str]) -> list[tuple[str, str]]:
    found = []
    for path in paths:
        try:
            with opened_region(path) as region:
                found.append((path, resolve_directory(region_trace_path(region))))
        except (TraceError, ValueError, OSError):
            continue
    return found


def _owner_id(path: str) -> int:
    try:
        return os.lstat(path).st_uid
    except OSError:
        return -1
