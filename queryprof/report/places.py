"""Places in the program: function and file:line, with files relative to the working directory of
the program.
"""

import os
import re

from queryprof.analysis.call_sites import CallSite
from queryprof.model import Frame, Profile

STANDARD = re.compile(r".*/lib/python3\.\d+t?/")
"""The folder of the standard library."""

CELL = re.compile(r"In \[\d+\]")
"""The name of a notebook's cell, in place of its file's."""


class Places:
    """The names of frames of one or several profiles."""

    def __init__(self, *profiles: Profile) -> None:
        self._directories = tuple(
            dict.fromkeys(
                os.path.join(process.directory, "")
                for profile in profiles
                for process in profile.processes
                if process.directory not in ("", "/")
            )
        )

    def file(self, path: str) -> str:
        """A file's path, relative to the working directory of the program if it is inside."""
        for directory in self._directories:
            if path.startswith(directory):
                return path[len(directory) :]
        _, installed, rest = path.rpartition("site-packages" + os.sep)
        if installed:
            return rest
        standard = STANDARD.match(path)
        return path[standard.end() :] if standard else path

    def where(self, frame: Frame) -> str:
        """A frame's file:line."""
        return numbered(self.file(frame.file), frame.line)

    def function(self, frame: Frame) -> str:
        """The name of a frame's function."""
        plain = frame.function.startswith(("<", "(")) or not frame.function
        return frame.function if plain else frame.function + "()"

    def frame(self, frame: Frame) -> str:
        """A frame's function and file:line."""
        return f"{self.function(frame)} {self.where(frame)}".rstrip()

    def site(self, site: CallSite) -> str:
        """A call site's function and file:line."""
        return self.frame(site.frame) if site.frame else "(unknown)"


def numbered(file: str, line: int) -> str:
    """file:line; of compiled code (Nuitka, Cython) the line is unknown, and of built-in code the
    file. A cell of a notebook is no file: In [5], line 4.
    """
    if CELL.fullmatch(file):
        return f"{file}, line {line or '?'}"
    return f"{file}:{line or '?'}" if file else ""
