"""Keep windows (the files of ended recording periods) that wait to be sent to the store.

    PLACE/.queryprof-ship/taken-TIME/  the files of one batch: a window, service and version
                         /sent-TIME/   a batch that is in the store, to be deleted
                         /lost-TIME-N/ an empty directory: N windows were dropped to save space

Each step is one rename, so the next run can continue after a kill at any moment. A sent batch is
renamed before it is deleted. Otherwise, a half-deleted batch would be sent again, incomplete, under
the same names.

PLACE is the directory in which processes record. Its owner may put anything there while another
user, such as root, ships from it. So all paths are relative to opened directories, and links are
not followed.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple, Self

from queryprof.errors import QueryprofError
from queryprof.region.file_lock import lock_file
from queryprof.region.region_files import PART_SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queryprof.collect.closed_windows import Window

FOLDER = ".queryprof-ship"
TAKEN, SENT, LOST = "taken-", "sent-", "lost-"
LAST = "last."
"""Prefix of the name of a process's last file, which no later file continues."""

DAMAGED, DELIVERED = ".damaged", "delivered-"
MAX_TRIES = 3
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Taken(NamedTuple):
    """A file of a batch.

    Attributes:
        path: a path that is valid while the batch is open.
        continues: whether a later file has the executions that were still in progress at the end of
            this file.
    """

    name: str
    path: str
    continues: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """A directory of files that are sent together, as one file per table.

    Attributes:
        handle: descriptor of the open directory.
    """

    name: str
    handle: int

    def files(self) -> list[Taken]:
        """Return the files of the batch."""
        return [
            Taken(name, f"/proc/self/fd/{self.handle}/{name}", not name.startswith(LAST))
            for name in sorted(os.listdir(self.handle))
            if name.endswith(PART_SUFFIX)
        ]

    @property
    def lost(self) -> int:
        """Number of windows that were dropped before this batch."""
        return sum(map(_count, os.listdir(self.handle)))

    def has(self, message: str) -> bool:
        """Return whether a message of this batch was recorded as delivered."""
        return f"{DELIVERED}{message}" in os.listdir(self.handle)

    def add(self, message: str) -> None:
        """Record that a message was delivered to the store or to an OTLP endpoint."""
        flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(f"{DELIVERED}{message}", flags, 0o600, dir_fd=self.handle))

    @property
    def bytes(self) -> int:
        """Size on the disk, in bytes. It is below the sum of the file sizes, because the files are
        sparse.
        """
        total = 0
        for file in self.files():
            with suppress(OSError):
                total += _stat(file.name, self.handle).st_blocks * 512
        return total


class Batches:
    """The batches of a recording directory.

    Args:
        place: the directory in which processes record.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._place_handle = self._handle = -1

    @contextmanager
    def alone(self) -> Iterator[Self]:
        """Lock the batches, so that only this process uses them during the block.

        Raises:
            QueryprofError: another process has the lock, or the directory cannot be created.
        """
        self._open()
        try:
            yield self
        finally:
            with suppress(OSError):  # batches are left
                if self._is_unchanged():
                    os.rmdir(FOLDER, dir_fd=self._place_handle)
            self._close()

    def open_again(self) -> None:
        """Reopen the directories if they were replaced. Raises QueryprofError."""
        if not self._is_unchanged():
            self._close()
            self._open()

    def _is_unchanged(self) -> bool:
        """Return whether the paths still lead to the open directories."""
        try:
            of_place = os.path.samestat(os.stat(self._place), os.fstat(self._place_handle))
            own = _stat(FOLDER, self._place_handle)
            return of_place and os.path.samestat(own, os.fstat(self._handle))
        except OSError:
            return False

    def _open(self) -> None:
        try:
            self._place_handle = os.open(self._place, DIRECTORY & ~os.O_NOFOLLOW)
            self._handle = self._lock_folder()
            for name in os.listdir(self._handle):
                if name.startswith(SENT):
                    _remove(name, self._handle)
        except OSError as error:
            self._close()
            reason = error.strerror or error
            raise QueryprofError(f"{self._place}: cannot be written to: {reason}") from error
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        for handle in (self._handle, self._place_handle):
            if handle >= 0:
                os.close(handle)
        self._handle = self._place_handle = -1

    def _lock_folder(self) -> int:
        for _ in range(MAX_TRIES):
            with suppress(FileExistsError):
                os.mkdir(FOLDER, 0o700, dir_fd=self._place_handle)
            handle = os.open(FOLDER, DIRECTORY, dir_fd=self._place_handle)
            try:
                found = os.fstat(handle)
                if found.st_uid != os.geteuid():
                    raise QueryprofError(
                        f"{os.path.join(self._place, FOLDER)}: belongs to another user, who"
                        " sends from there"
                    )
                if not lock_file(handle):
                    raise BlockingIOError
                if os.path.samestat(found, _stat(FOLDER, self._place_handle)):
                    return handle
            except (BlockingIOError, FileNotFoundError):
                pass  # another process locked or removed the folder
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
        raise QueryprofError(
            f"{self._place}: another `queryprof fleet ship` already sends these recordings"
        )

    def take(self, windows: Iterable[Window]) -> None:
        """Move windows into a new batch, together with the count of lost windows."""
        name = f"{TAKEN}{self._next_time()}"
        os.mkdir(name, 0o700, dir_fd=self._handle)
        with self.opened(name) as batch:
            for window in windows:
                part = os.path.basename(window.path)
                taken = part if window.continues else f"{LAST}{part}"
                # The recorded process may have removed the file, because it keeps only its latest
                # windows.
                with suppress(FileNotFoundError):
                    os.rename(part, taken, src_dir_fd=self._place_handle, dst_dir_fd=batch.handle)
            _move_lost(self._handle, batch.handle)

    def _next_time(self) -> int:
        """Return the current time (ns), or a later time if a batch is as new."""
        known = [_time_in_name(name) + 1 for name in ["", *os.listdir(self._handle)]]
        return max(time.time_ns(), *known)

    def waiting(self) -> list[str]:
        """Return the names of the waiting batches, oldest first."""
        names = [name for name in os.listdir(self._handle) if name.startswith(TAKEN)]
        return sorted(names, key=_time_in_name)

    @contextmanager
    def opened(self, name: str) -> Iterator[Batch]:
        """Open a batch for the duration of the block. Raises QueryprofError if it is not a
        directory.
        """
        try:
            handle = os.open(name, DIRECTORY, dir_fd=self._handle)
        except OSError as error:
            reason = error.strerror or error
            where = os.path.join(self._place, FOLDER, name)
            raise QueryprofError(f"{where}: cannot be read: {reason}") from error
        try:
            yield Batch(name, handle)
        finally:
            os.close(handle)

    def count(self) -> int:
        """Return the number of waiting windows."""
        total = 0
        for name in self.waiting():
            with self.opened(name) as batch:
                total += len(batch.files())
        return total

    def set_aside(self, batch: Batch, file: Taken) -> str:
        """Move an unreadable file back to the recording directory, under a name that readers
        ignore.

        Return its path.
        """
        name = f"{file.name.removeprefix(LAST)}{DAMAGED}"
        os.rename(file.name, name, src_dir_fd=batch.handle, dst_dir_fd=self._place_handle)
        return os.path.join(self._place, name)

    def keep_lost(self, batch: Batch) -> None:
        """Pass the count of lost windows on to the next batch."""
        _move_lost(batch.handle, self._handle)

    def end(self, batch: Batch) -> None:
        """Delete a batch that was sent."""
        sent = f"{SENT}{batch.name.removeprefix(TAKEN)}"
        os.rename(batch.name, sent, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        _remove(sent, self._handle)

    def drop_beyond(self, max_bytes: int) -> int:
        """Drop the oldest batches until the remaining batches take at most `max_bytes` on the disk.

        Return the number of lost windows.
        """
        sizes: list[tuple[str, int, int]] = []
        for name in self.waiting():
            with self.opened(name) as batch:
                sizes.append((name, batch.bytes, len(batch.files()) + batch.lost))
        left, lost = sum(size for _, size, _ in sizes), 0
        for name, size, count in sizes:
            if left <= max_bytes:
                break
            dropped = f"{LOST}{name.removeprefix(TAKEN)}-{count}"
            os.rename(name, dropped, src_dir_fd=self._handle, dst_dir_fd=self._handle)
            left -= size
            lost += count
        for name in os.listdir(self._handle):
            if name.startswith(LOST):  # includes leftovers of a killed run
                self._remove_content(name)
        return lost

    def _remove_content(self, name: str) -> None:
        with suppress(QueryprofError), self.opened(name) as batch:
            for inner in os.listdir(batch.handle):
                _remove(inner, batch.handle)


def _move_lost(source: int, target: int) -> None:
    """Move the counts of lost windows from one directory to another."""
    for name in os.listdir(source):
        if _count(name):
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)


def _remove(name: str, handle: int) -> None:
    """Remove a file or folder from a directory without following links."""
    if stat.S_ISDIR(_stat(name, handle).st_mode):
        shutil.rmtree(name, dir_fd=handle)
    else:
        os.unlink(name, dir_fd=handle)


def _stat(name: str, handle: int) -> os.stat_result:
    return os.stat(name, dir_fd=handle, follow_symlinks=False)


def _time_in_name(name: str) -> int:
    """Return the time in the name of a batch, or 0."""
    text = name.partition("-")[2].partition("-")[0]
    return int(text) if text.isdecimal() and len(text) < 30 else 0


def _count(name: str) -> int:
    """Return the number of lost windows in the name of a directory, or 0."""
    text = name.rpartition("-")[2]
    is_one = name.startswith(LOST) and text.isdecimal() and len(text) < 10
    return int(text) if is_one else 0
