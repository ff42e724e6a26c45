"""Code locations for a page that may be shared: file paths reveal no directories of the machine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from queryprof.model import Profile
from queryprof.report.places import Places


class PagePlaces(Places):
    """Name files relative to the program's directory.

    Other files are relative to the common directory of all files outside the program's directory.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        paths = {frame.file for a in profile.aggregates for frame in a.path}
        outside = [path for path in map(super().file, paths) if os.path.isabs(path)]
        folders = [os.path.dirname(path) for path in outside]
        self._common = os.path.join(os.path.commonpath(folders), "") if folders else ""
        self._files: dict[str, str] = {}

    def file(self, path: str) -> str:
        known = self._files.get(path)
        if known is None:
            known = super().file(path)
            if os.path.isabs(known):
                inside = self._common and known.startswith(self._common)
                known = known[len(self._common) :] if inside else os.path.basename(known)
            self._files[path] = known
        return known

    def command_line(self, arguments: Iterable[str]) -> str:
        """Return a command line. Absolute paths are shortened as in `file`."""
        return shlex.join(self.file(each) if os.path.isabs(each) else each for each in arguments)
