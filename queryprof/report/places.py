"""Names of code locations in the program: function and file:line.

Files are relative to the program's working directory.
"""

import os
import re
from collections.abc import Iterable

from queryprof.analysis.call_sites import CallSite
from queryprof.model import Frame, Profile

STANDARD = re.compile(r".*/lib/python3\.\d+t?/")
"""The standard library's folder."""

CELL = re.compile(r"In \[\d+\]")
"""Name of a notebook cell, used where other code has a file name."""


class Places:
    """Name the frames of one or more profiles.

    Args:
        directories: further directories whose files get relative paths.
    """

    def __init__(self, *profiles: Profile, directories: Iterable[str] = ()) -> None:
        of_processes = (process.directory for profile in profiles for process in profile.processes)
        self._directories = tuple(
            dict.fromkeys(
                os.path.join(directory, "")
                for directory in (*of_processes, *directories)
                if directory not in ("", "/")
            )
        )

    def file(self, path: str) -> str:
        """Return a file's path without the program's working directory, site-packages, or the
        standard library's directory.
        """
        for directory in self._directories:
            if path.startswith(directory):
                return path[len(directory) :]
        _, installed, rest = path.rpartition("site-packages" + os.sep)
        if installed:
            return rest
        standard = STANDARD.match(path)
        return path[standard.end() :] if standard else path

    def where(self, frame: Frame) -> str:
        """Return a frame's file:line."""
        return file_and_line(self.file(frame.file), frame.line)

    def function(self, frame: Frame) -> str:
        """Return the name of a frame's function, with "()" unless it is <lambda> or the like."""
        plain = frame.function.startswith(("<", "(")) or not frame.function
        return frame.function if plain else frame.function + "()"

    def frame_text(self, frame: Frame) -> str:
        """Return a frame's function and file:line."""
        return f"{self.function(frame)} {self.where(frame)}".rstrip()

    def site(self, site: CallSite) -> str:
        """Return a call site's function and file:line."""
        return self.frame_text(site.frame) if site.frame else "(unknown)"


def file_and_line(file: str, line: int) -> str:
    """Return file:line, or "In [5], line 4" for a notebook cell.

    The line is "?" for compiled code (Nuitka, Cython). Built-in code has no file: returns "".
    """
    if CELL.fullmatch(file):
        return f"{file}, line {line or '?'}"
    return f"{file}:{line or '?'}" if file else ""
