"""Check whether processes may have left recordings of a trace.

Commands that read many traces use this module, because it lists each directory only once.
"""

from __future__ import annotations

import os
from bisect import bisect_left

from queryprof.collect.output_path import path_without_process
from queryprof.collect.recorded_files import RecordedFiles
from queryprof.region.region_files import list_names, region_key, region_keys, temporary_stem


class LeftRecordings:
    """Snapshot of the recordings that exist. Recordings that begin later are ignored.

    Regions are listed on creation, a directory on its first use.
    """

    def __init__(self) -> None:
        self.recorded = RecordedFiles()
        self._regions = region_keys()
        self._names: dict[str, list[str]] = {}

    def may_have_recordings_of(self, path: str) -> bool:
        """Return whether there are recordings of the trace at `path`, or of its first process.

        Recordings are regions, parts, checkpoints, unfinished traces and runners' directories.
        """
        return bool(self.recorded.regions_of(path) or self.recorded.copies_of(path)) or any(
            region_key(one) in self._regions or self._is_beside(one)
            for one in {path, path_without_process(path)}
        )

    def _is_beside(self, path: str) -> bool:
        directory, name = os.path.split(temporary_stem(os.path.abspath(path)))
        names = self._names.get(directory)
        if names is None:
            names = self._names[directory] = sorted(list_names(directory))
        at = bisect_left(names, f"{name}.")
        return at < len(names) and names[at].startswith(f"{name}.")
