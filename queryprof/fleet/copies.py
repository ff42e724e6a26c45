"""Keep local copies of an object store's files, so that each file is downloaded only once.

    CACHE/HASH OF THE URL/TABLE/service=.../date=.../NAME

A copy has the size and modification time of the store's file. If either differs, the file is
downloaded again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from queryprof.errors import QueryprofError
from queryprof.fleet.location import Directory
from queryprof.fleet.names import identifier
from queryprof.fleet.parquet_files import ENDING, in_a_path
from queryprof.fleet.schema import FLEET_TABLES
from queryprof.fleet.store import PATTERN, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queryprof.fleet.location import Entry, ObjectStore

MAX_BYTES = 20 * 10**9
MAX_WINDOW = timedelta(days=1)
MAX_NAME_CHARACTERS = 1024


class Wanted(NamedTuple):
    """The files to read, selected by service and time. None means no limit.

    Attributes:
        since, until: the windows to read end after `since` and begin before `until`.
    """

    service: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def has(self, name: str) -> bool:
        """Return whether a file may have matching windows, according to its name."""
        _, service, date, _ = name.split("/")
        if self.service is not None and service != f"service={in_a_path(self.service)}":
            return False
        try:
            begin = datetime.strptime(date, "date=%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            return False
        end = begin + timedelta(days=1) + MAX_WINDOW
        return (self.since is None or end >= self.since) and (
            self.until is None or begin < self.until
        )


def is_plain(name: str) -> bool:
    """Return whether a listed name is a safe relative path of four parts, like the names of table
    files.
    """
    parts = name.split("/")
    is_path = len(parts) == 4 and all(one.strip(".") for one in parts)
    return is_path and len(name) <= MAX_NAME_CHARACTERS and not set(name) & (PATTERN | {"\\", "\0"})


class Copies:
    """The copies of one store.

    Args:
        folder: the cache.
        most_bytes: the maximum size of the cache. step: called after each copied file.
    """

    def __init__(
        self,
        store: ObjectStore,
        folder: str,
        most_bytes: int = MAX_BYTES,
        step: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._folder = folder
        self._own = os.path.join(folder, identifier(store.url))
        self._most_bytes = most_bytes
        self._step = step

    def place(self, wanted: Wanted) -> Place:
        """Copy the files of all tables, and return the copies. Raises QueryprofError."""
        files = {
            table.name: [
                self._copy_path(entry.name)
                for entry in self._copy_files(table.name, wanted)
                if entry.name.endswith(ENDING)
            ]
            for table in FLEET_TABLES
        }
        return Place(self._store.url, files)

    def _copy_path(self, name: str) -> str:
        return os.path.join(self._own, *name.split("/"))

    def _copy_files(self, table: str, wanted: Wanted) -> list[Entry]:
        entries = [
            one for one in self._store.entries(table) if is_plain(one.name) and wanted.has(one.name)
        ]
        missing = [one for one in entries if not self._is_copied(one)]
        self._make_room(
            sum(one.bytes for one in missing), {self._copy_path(one.name) for one in entries}
        )
        local = Directory(self._own)
        for entry in missing:
            path = local.put(entry.name, self._store.get(entry.name))
            os.utime(path, ns=(entry.modified_ns, entry.modified_ns))
            self._step()
        return entries

    def _is_copied(self, entry: Entry) -> bool:
        try:
            found = os.stat(self._copy_path(entry.name))
        except OSError:
            return False
        return (found.st_size, found.st_mtime_ns) == (entry.bytes, entry.modified_ns)

    def _make_room(self, bytes_: int, kept: set[str]) -> None:
        """Remove the least recently used copies that are not needed now, until `bytes_` more bytes
        fit. Raises QueryprofError.
        """
        there = sorted(self._files())
        total = bytes_ + sum(size for _, size, _ in there)
        for _, size, path in there:
            if total <= self._most_bytes:
                return
            if path not in kept:
                os.unlink(path)
                total -= size
        if total > self._most_bytes:
            raise QueryprofError(
                f"{self._store.url}: the selection has {total / 1e9:.1f} GB, but the cache holds"
                f" {self._most_bytes / 1e9:.1f} GB; select less (--during 7d, --where service=NAME)"
            )

    def _files(self) -> Iterator[tuple[int, int, str]]:
        """Yield the last access time, size and path of each copy."""
        for above, _, names in os.walk(self._folder):
            for name in names:
                path = os.path.join(above, name)
                found = os.lstat(path)
                yield max(found.st_atime_ns, found.st_ctime_ns), found.st_size, path


def default_folder() -> str:
    """Return the default cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "queryprof", "fleet")
