"""Windows that were taken from a place, and are not in the store yet.

    PLACE/.queryprof-ship/taken-TIME/     the files of a batch: of one window, service and version
                         /sent-TIME/      in the store; to be deleted
                         /lost-TIME-N/    an empty directory: N windows that there was no room for

Each step is one rename: killed at any moment, the next run finds what to go on with. What is sent
is renamed before it is deleted: a batch that was deleted in half would be sent short under the same
names.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from queryprof.errors import QueryprofError
from queryprof.region.region_files import PART_SUFFIX, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queryprof.collect.closed_windows import Window

FOLDER = ".queryprof-ship"
TAKEN, SENT, LOST = "taken-", "sent-", "lost-"
LAST = "last."
"""Before the name of a file that nothing goes on with."""

DAMAGED, TOLD = ".damaged", "told"
TRIES = 3


class Taken(NamedTuple):
    """A file of a batch.

    Attributes:
        goes_on: what was open at its end, a later one has.
    """

    path: str
    goes_on: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """A directory of files that become one of each table."""

    path: str

    def files(self) -> list[Taken]:
        """The files."""
        return [
            Taken(os.path.join(self.path, name), not name.startswith(LAST))
            for name in sorted(names_in(self.path))
            if name.endswith(PART_SUFFIX)
        ]

    @property
    def lost(self) -> int:
        """Windows that were lost before."""
        return sum(map(_count, names_in(self.path)))

    @property
    def is_told(self) -> bool:
        """Whether the team's telemetry has it."""
        return TOLD in names_in(self.path)

    def tell(self) -> None:
        """Notes that the team's telemetry has it."""
        os.close(os.open(os.path.join(self.path, TOLD), os.O_CREAT | os.O_WRONLY, 0o600))

    def set_aside(self, file: Taken, place: str) -> str:
        """Puts a file that cannot be read back beside its trace, under a name that no reader looks
        for; returns its path.
        """
        name = os.path.basename(file.path).removeprefix(LAST)
        path = os.path.join(place, f"{name}{DAMAGED}")
        os.rename(file.path, path)
        return path

    def end(self) -> None:
        """Deletes the files: they are in the store."""
        above, name = os.path.split(self.path)
        sent = os.path.join(above, f"{SENT}{name.removeprefix(TAKEN)}")
        os.rename(self.path, sent)
        shutil.rmtree(sent)


class Batches:
    """The batches of a place.

    Args:
        place: the directory in which processes record.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._folder = os.path.join(place, FOLDER)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For this process alone while the block runs.

        Raises:
            QueryprofError: another process has them, or they cannot be made.
        """
        try:
            handle = self._locked()
        except OSError as error:
            reason = error.strerror or error
            raise QueryprofError(f"{self._place}: cannot be written to: {reason}") from error
        try:
            for name in names_in(self._folder):
                if name.startswith(SENT):
                    shutil.rmtree(os.path.join(self._folder, name))
            yield
        finally:
            with suppress(OSError):  # there are some left
                os.rmdir(self._folder)
            os.close(handle)

    def _locked(self) -> int:
        import fcntl

        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        for _ in range(TRIES):
            with suppress(FileExistsError):
                os.mkdir(self._folder, 0o700)
            handle = os.open(self._folder, flags)
            try:
                found = os.fstat(handle)
                if found.st_uid != os.geteuid():
                    raise QueryprofError(f"{self._folder}: is another user's: who ships?")
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(found, os.lstat(self._folder)):
                    return handle
            except (BlockingIOError, FileNotFoundError):
                pass  # another process has it, or has just removed it
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
        raise QueryprofError(
            f"{self._place}: another `queryprof ship` sends what is recorded there"
        )

    def take(self, windows: Iterable[Window]) -> None:
        """Makes a batch of files, with what was lost before."""
        path = os.path.join(self._folder, f"{TAKEN}{self._time()}")
        os.mkdir(path, 0o700)
        for window in windows:
            name = os.path.basename(window.path)
            name = name if window.goes_on else f"{LAST}{name}"
            with suppress(FileNotFoundError):  # its process has removed it: it keeps the latest
                os.rename(window.path, os.path.join(path, name))
        self._move_lost(self._folder, path)

    def _time(self) -> int:
        """Of the next batch: later than all."""
        return max(time.time_ns(), *(_time(name) + 1 for name in ["", *names_in(self._folder)]))

    def waiting(self) -> list[Batch]:
        """The batches, the oldest first."""
        names = [name for name in names_in(self._folder) if name.startswith(TAKEN)]
        return [Batch(os.path.join(self._folder, name)) for name in sorted(names, key=_time)]

    def keep_lost(self, batch: Batch) -> None:
        """What was lost before a batch without a file is sent with the next one."""
        self._move_lost(batch.path, self._folder)

    def _move_lost(self, path: str, target: str) -> None:
        for name in names_in(path):
            if name.startswith(LOST):
                os.rename(os.path.join(path, name), os.path.join(target, name))

    def drop_beyond(self, most_bytes: int) -> int:
        """Drops the oldest batches until the others take at most so many bytes on the disk; returns
        how many windows were lost.
        """
        waiting = self.waiting()
        sizes = [_bytes_of(batch) for batch in waiting]
        lost = 0
        for at, batch in enumerate(waiting):
            if sum(sizes[at:]) <= most_bytes:
                break
            count = len(batch.files()) + batch.lost
            time_ns = os.path.basename(batch.path).removeprefix(TAKEN)
            path = os.path.join(self._folder, f"{LOST}{time_ns}-{count}")
            os.rename(batch.path, path)
            lost += count
        for name in names_in(self._folder):
            if name.startswith(LOST):  # also of a run that was killed
                _empty(os.path.join(self._folder, name))
        return lost


def _time(name: str) -> int:
    """Of a batch, by its name; 0: it is none."""
    text = name.partition("-")[2].partition("-")[0]
    return int(text) if text.isdecimal() else 0


def _count(name: str) -> int:
    """Of windows that were lost, by the name of their directory."""
    text = name.rpartition("-")[2]
    return int(text) if name.startswith(LOST) and text.isdecimal() else 0


def _bytes_of(batch: Batch) -> int:
    """What a batch takes on the disk: regions are sparse files."""
    total = 0
    for file in batch.files():
        with suppress(OSError):
            total += os.stat(file.path).st_blocks * 512
    return total


def _empty(path: str) -> None:
    for name in names_in(path):
        inner = os.path.join(path, name)
        shutil.rmtree(inner) if os.path.isdir(inner) else os.unlink(inner)
