"""What the processes of one recorded command have left, and how it becomes one trace.

Who runs the command makes a directory for it, by whose path the regions of its processes are found; in
it are parts of recordings, copies of regions, and traces of processes that had no shared memory. When
the runner is killed, all of it stays, and is found beside the trace that it should have become.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat

from queryprof.errors import QueryprofError, TraceError
from queryprof.trace.convert import Conversion
from queryprof.trace.identity import identities_in, identity_of
from queryprof.trace.place import beside, is_written, refuse_to_replace
from queryprof.trace.region import Region
from queryprof.trace.regions import (
    checkpoints_of,
    claimed_region,
    is_living,
    is_process_living,
    parts_of,
    regions_of,
    remove,
    started_at,
)
from queryprof.trace.store import TraceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queryprof.trace.identity import Identity

SUFFIX = ".parts"
RUNNER = "runner"
"""The file in the directory that says who runs the command: process id, when that started."""


class Collection:
    """The directory of one recorded command.

    Args:
        directory: its path.
        further: adds what else is known of a process, by the store, its number in it and its id.
    """

    def __init__(
        self, directory: str, further: Callable[[TraceStore, int, int], None] | None = None
    ) -> None:
        self.directory = directory
        self._further = further
        self._conversion: Conversion | None = None
        self._taken: set[Identity] | None = None
        self.skipped: dict[str, str] = {}
        """By path: why a region could not be taken."""

    def sign(self) -> None:
        """Says that this process runs the command. Raises OSError."""
        with open(os.path.join(self.directory, RUNNER), "w", encoding="ascii") as file:
            file.write(f"{os.getpid()} {started_at(os.getpid())}")

    @property
    def is_running(self) -> bool:
        """Whether the process still runs that has signed."""
        try:
            with open(os.path.join(self.directory, RUNNER), encoding="ascii") as file:
                pid, started = map(int, file.read().split())
        except (OSError, ValueError):
            return False
        return is_process_living(pid, started)

    @property
    def regions(self) -> list[str]:
        """The regions, and the copies of regions."""
        copies = checkpoints_of(os.path.join(self.directory, "part"))
        return [*regions_of(self.directory), *copies]

    def traces(self) -> list[str]:
        """What was taken, and the traces of processes that had no shared memory."""
        try:
            names = [name for name in os.listdir(self.directory) if name.endswith(".qprof")]
        except FileNotFoundError:
            return []
        return sorted(os.path.join(self.directory, name) for name in names)

    def parts(self, pid: int) -> list[str]:
        """The parts of a process's recording."""
        return parts_of(os.path.join(self.directory, "part"), pid)

    def take(self, path: str) -> bool:
        """Adds a region with its parts to what was taken, and removes them; False: another process does,
        or it is in `skipped`.

        Raises:
            OSError, sqlite3.Error: it cannot be written. Nothing is lost.
        """
        try:
            with claimed_region(path) as region:
                if region is None:
                    return False
                identity, files = identity_of(region), self.parts(int(region["pid"]))
                if identity not in self._identities():
                    self._add(region, files)
                    self._identities().add(identity)
                remove([*files, path])
        except TraceError as error:
            self.skipped[path] = str(error)
            return False
        self.skipped.pop(path, None)
        return True

    def _identities(self) -> set[Identity]:
        """Of the processes of which there is a trace: who was killed before it removed their regions has
        left both.
        """
        if self._taken is None:
            self._taken = {one for path in self.traces() for one in identities_in(path)}
        return self._taken

    def _add(self, region: Region, parts: list[str]) -> None:
        if self._conversion is None:
            self._conversion = Conversion(self._new_store())
        conversion, store = self._conversion, self._conversion.store
        try:
            with store.transaction():
                for part in parts:
                    opened = Region(path=part)
                    try:
                        conversion.add(opened)
                    finally:
                        opened.close()
                process = conversion.add(region)
                if self._further:
                    self._further(store, process, int(region["pid"]))
        except BaseException:
            self._conversion = None  # it knows more than the store has
            store.abandon()
            raise

    def _new_store(self) -> TraceStore:
        os.makedirs(self.directory, exist_ok=True)
        number = 1
        while True:
            path = os.path.join(self.directory, f"collected-{number}.qprof")
            try:
                return TraceStore(path)
            except FileExistsError:
                number += 1
            except TraceError as error:
                remove([path])
                raise OSError(str(error)) from error

    def close(self) -> None:
        """No more is taken."""
        conversion, self._conversion = self._conversion, None
        if conversion is not None:
            conversion.store.close()

    def write(
        self, output: str, step: Callable[[], None] = lambda: None, keeps_output: bool = True
    ) -> str | None:
        """Makes one trace of what was taken, and returns its path: `output`, or one beside it where another
        process writes to that. None: nothing was recorded.

        Raises:
            QueryprofError, OSError, sqlite3.Error: it cannot be written. Nothing is lost.
        """
        self.close()
        traces = [path for path in self.traces() if identities_in(path)]
        if not traces:
            return None
        if is_written(output):
            output = beside(output)
        if len(traces) > 1:
            from queryprof.trace.merge import merge_traces

            merge_traces(output, traces, step)
        else:
            if keeps_output:
                refuse_to_replace(output)
            os.replace(traces[0], output)
        return output

    def remove(self) -> None:
        """Removes the directory with what is in it."""
        shutil.rmtree(self.directory, ignore_errors=True)


def left_beside(path: str) -> Iterator[Collection]:
    """What commands have left whose trace should be at `path`, and whose runners were killed."""
    directory, name = os.path.split(os.path.abspath(path))
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for one in names:
        is_named = one.startswith(f"{name}.") and one.endswith(SUFFIX)
        if is_named and _is_trusted(os.path.join(directory, one)):
            collection = Collection(os.path.join(directory, one))
            if not collection.is_running:
                yield collection


def _is_trusted(path: str) -> bool:
    """A directory of this user; for root, of anybody."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and os.getuid() in (0, status.st_uid)


def recover(collection: Collection, path: str) -> str | None:
    """Makes the trace that a killed runner would have made, and returns its path. None: there is nothing,
    or a process still runs, or it cannot be.
    """
    try:
        found = collection.regions
        if any(_lives(one) for one in found):
            return None
        for one in found:
            collection.take(one)
        free = beside(path) if os.path.lexists(path) else path
        output = collection.write(free)
    except (QueryprofError, OSError, sqlite3.Error):
        return None
    if not collection.regions:
        collection.remove()
    return output


def _lives(path: str) -> bool:
    try:
        region = Region(path=path)
    except TraceError:
        return False
    try:
        return is_living(region) is not False
    finally:
        region.close()
