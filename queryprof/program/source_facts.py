"""What the program's source files are when its recording ends: whoever reads the trace shows lines
of a file only while it is that.

The content's hash is the key. A stranger may write a trace that names any file of yours, but cannot
know the hash of what is in it.
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

MOST_FILES = 500
LARGEST_BYTES = 2_000_000
SUFFIXES = (".py", ".pyw")

NO_FACTS = ("", 0, 0)


def is_of_this_machine(region: Region) -> bool:
    """Whether a region was recorded here since the system began: this process's own has no path,
    and others have that number, which only this machine knows.

    Of a stranger's region no file may be hashed: it would be shown then.
    """
    boot = bytes(region["boot"]).rstrip(b"\0").decode("ascii", "replace")
    return not region.path or bool(boot and boot == boot_id())


def source_of(file: str) -> tuple[bytes, int] | None:
    """The content of a Python file, and when it was last changed (ns since 1970); None: it is none,
    cannot be read, or is too large.
    """
    if not file.endswith(SUFFIXES):
        return None
    try:
        # What waits for a writer or never ends is not opened as a file would be.
        handle = os.open(file, UNDISTURBED)
        with open(handle, "rb") as content:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_BYTES:
                return None
            return content.read(LARGEST_BYTES), facts.st_mtime_ns
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return None


class SourceFacts:
    """Hashes each file once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int, int]] = {}

    def of(self, files: Iterable[str], end_unix_ns: int) -> Iterator[tuple[str, str, int]]:
        """Rows of the table `source`, of files that have not changed since a time."""
        for file in sorted(files):
            if file not in self._known and len(self._known) < MOST_FILES:
                self._known[file] = _facts(file)
            digest, size, changed_unix_ns = self._known.get(file, NO_FACTS)
            if digest and changed_unix_ns <= end_unix_ns:
                yield file, digest, size


def _facts(file: str) -> tuple[str, int, int]:
    """The hash, the bytes, and when they were last changed."""
    from hashlib import sha256

    found = source_of(file)
    if found is None:
        return NO_FACTS
    content, changed_unix_ns = found
    return sha256(content, usedforsecurity=False).hexdigest(), len(content), changed_unix_ns
