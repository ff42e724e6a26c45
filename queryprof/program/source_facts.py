"""Hash the program's source files at the end of its recording. queryprof shows lines of a source
file only if the file still has the recorded hash.

A trace from someone else may name any of your files, but its author cannot know the hashes of their
contents.
"""

from __future__ import annotations

import os
import stat

from queryprof.given_file import UNDISTURBED
from queryprof.region.region_files import boot_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queryprof.region.region import Region

MAX_FILES = 500
MAX_BYTES = 2_000_000
SUFFIXES = (".py", ".pyw")

NO_FACTS = ("", 0, 0)


def is_from_this_boot(region: Region) -> bool:
    """Return whether a region (the memory of a recording) was recorded on this machine since the
    last boot.

    This process's own region has no path. All other regions have the boot id, which only this
    machine knows. Files that a foreign region names must not be hashed, because queryprof would
    then show their lines.
    """
    boot = bytes(region["boot"]).rstrip(b"\0").decode("ascii", "replace")
    return not region.path or bool(boot and boot == boot_id())


def read_source_file(file: str) -> tuple[bytes, int] | None:
    """Return the content of a Python file, and its modification time (ns since 1970).

    Returns None if the file has another extension, cannot be read, or is too large.
    """
    if not file.endswith(SUFFIXES):
        return None
    try:
        # Open without waiting, because a pipe or device could block or never end.
        handle = os.open(file, UNDISTURBED)
        with open(handle, "rb") as content:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
                return None
            return content.read(MAX_BYTES), facts.st_mtime_ns
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return None


class SourceFacts:
    """Hashes each file once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int, int]] = {}

    def rows_of(self, files: Iterable[str], end_unix_ns: int) -> Iterator[tuple[str, str, int]]:
        """Yield rows (file, hash, size) of the table `source`, for files that have not changed
        since `end_unix_ns`.
        """
        for file in sorted(files):
            if file not in self._known and len(self._known) < MAX_FILES:
                self._known[file] = _file_facts(file)
            digest, size, changed_unix_ns = self._known.get(file, NO_FACTS)
            if digest and changed_unix_ns <= end_unix_ns:
                yield file, digest, size


def _file_facts(file: str) -> tuple[str, int, int]:
    """Return a file's hash, its size in bytes, and its modification time."""
    from hashlib import sha256

    found = read_source_file(file)
    if found is None:
        return NO_FACTS
    content, changed_unix_ns = found
    return sha256(content, usedforsecurity=False).hexdigest(), len(content), changed_unix_ns
