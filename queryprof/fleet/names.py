"""Return the names of statements, call sites and databases for a fleet's tables.

A name is the same on every host and in every window.
"""

from __future__ import annotations

import hashlib
import os

from queryprof.analysis.call_sites import Sites
from queryprof.report.places import Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.analysis.call_sites import CallSite
    from queryprof.model import CallPath, Frame, Profile

ID_DIGITS = 16
"""Hexadecimal digits of a SHA-256 hash to keep (64 bits)."""

PARTS_OUTSIDE = 2
"""The number of trailing parts to keep of a path outside the program's directory."""


def identifier(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_DIGITS]


class FleetPlaces(Places):
    """Names files relative to the program's directory, or by their last parts if outside it.

    A name depends only on the file and the program's directory. So a file has the same name in all
    windows, and no name reveals a machine's paths.
    """

    def file(self, path: str) -> str:
        found = super().file(path)
        return "/".join(found.split(os.sep)[-PARTS_OUTSIDE:]) if os.path.isabs(found) else found


class FlatNames:
    """The names for the rows of one profile.

    Args:
        is_anonymous: replace the program's texts by their hashes.
    """

    def __init__(self, profile: Profile, sites: Sites, is_anonymous: bool) -> None:
        self._places = FleetPlaces(profile)
        self._sites = sites
        self._is_anonymous = is_anonymous
        self._of_paths: dict[int, tuple[CallPath, tuple[str, str, str]]] = {}

    def outgoing_text(self, text: str) -> str:
        """Return a text of the program in the form that may leave the machine: a hash if
        anonymous.
        """
        return identifier(text) if self._is_anonymous and text else text

    def path(self, path: CallPath) -> tuple[str, str, str]:
        """Return three names of a call path: its frames, its call site, and its function.

        The frames are lines, innermost first. The function is the call site without line number.
        """
        known = self._of_paths.get(id(path))
        if known is None:
            frames = "\n".join(map(self._frame, path))
            ranked = self._sites.site(path)
            names = (
                self.outgoing_text(frames),
                self.site(ranked),
                self.outgoing_text(self._place(ranked.frame)),
            )
            known = self._of_paths[id(path)] = (path, names)
        return known[1]

    def site(self, site: CallSite) -> str:
        """Return a call site as "file:line function"; "" if unknown."""
        return self.outgoing_text(self._frame(site.frame)) if site.frame else ""

    def _frame(self, frame: Frame) -> str:
        return f"{self._places.file(frame.file)}:{frame.line} {frame.function}"

    def _place(self, frame: Frame | None) -> str:
        return f"{self._places.file(frame.file)} {frame.function}" if frame else ""

    def database(self, database: str) -> str:
        """Return the name of a database file."""
        return self.outgoing_text(self._places.file(database))
