"""The recordings of one command's processes, and how they become one trace.

The runner of the command creates a directory, and the path of the directory identifies the regions
of the command's processes. The directory holds parts of recordings, copies of regions, and traces
of processes that had no shared memory. If the runner is killed, the directory stays next to the
path of the trace.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import contextmanager

from queryprof.collect.convert import RegionConversion
from queryprof.collect.output_path import is_being_written, path_with_pid, refuse_to_replace
from queryprof.collect.part_files import parts_of_process, recording_files
from queryprof.errors import QueryprofError, TraceError
from queryprof.given_file import content_of
from queryprof.region.file_lock import lock_file
from queryprof.region.identity import region_identity
from queryprof.region.part_names import parts_of_trace
from queryprof.region.region import Region, claimed_region, opened_region
from queryprof.region.region_files import (
    checkpoints_of_trace,
    is_in_any_environment,
    is_living,
    is_process_living,
    list_names,
    process_id_scope,
    process_start_ticks,
    regions_of_trace,
    remove_files,
    temporary_stem,
)
from queryprof.trace.processes import identities_in
from queryprof.trace.store import TraceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Collection as Collection_

    from queryprof.trace.processes import Identity

SUFFIX = ".parts"
ENDINGS = (".qprof", ".live", ".new", "-journal")
RUNNER = "runner"
"""File in the directory that identifies the runner: process id, start time, and machine."""


class CommandDirectory:
    """The directory of one recorded command.

    Args:
        directory: its path.
        further: adds more data on a process, given the store, the process's id there and its pid.
    """

    def __init__(
        self, directory: str, further: Callable[[TraceStore, int, int], None] | None = None
    ) -> None:
        self.directory = directory
        self._further = further
        self._conversion: RegionConversion | None = None
        self._taken: set[Identity] | None = None
        self.skipped: dict[str, str] = {}
        """Why a region could not be taken, by path."""

    @property
    def _signature(self) -> str:
        return os.path.join(self.directory, RUNNER)

    def sign_as_runner(self) -> None:
        """Record this process as the runner of the command. Raises OSError."""
        handle = os.open(self._signature, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {process_start_ticks(os.getpid())}\n{process_id_scope()}")

    @property
    def is_left(self) -> bool:
        """Return whether the runner has ended and no process of the command is running.

        Returns False if the runner is on another machine or in a container, where it cannot be
        checked.
        """
        try:
            first, _, place = content_of(self._signature, 4096).decode().partition("\n")
            pid, started = map(int, first.split())
        except (OSError, ValueError):
            return False
        if place != process_id_scope():  # the runner is on another machine, or in a container
            return False
        return not is_process_living(pid, started) and not is_in_any_environment(self.directory)

    @contextmanager
    def claimed(self) -> Iterator[bool]:
        """Lock the directory for this process. Yields whether that succeeded."""
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = open(os.open(self._signature, flags), "rb")  # noqa: SIM115 it is closed below
        except OSError:
            yield False
            return
        with file:
            yield lock_file(file) and os.path.exists(self._signature)

    @property
    def regions(self) -> list[str]:
        """The regions, and the copies of regions."""
        copies = checkpoints_of_trace(os.path.join(self.directory, "part"))
        return [*regions_of_trace(self.directory), *copies]

    def traces(self) -> list[str]:
        """Return the traces made so far, including traces of processes without shared memory."""
        names = [name for name in list_names(self.directory) if name.endswith(".qprof")]
        return sorted(os.path.join(self.directory, name) for name in names)

    def parts(self, region: Region) -> list[str]:
        """Return the parts of the recording that continues in a region."""
        of_its_id = parts_of_trace(os.path.join(self.directory, "part"), int(region["pid"]))
        parts, unsound = parts_of_process(of_its_id, region_identity(region))
        self.skipped.update(unsound)
        return parts

    def take(self, path: str) -> bool:
        """Add a region and its parts to the traces, and remove their files.

        Returns False if another process does the same, or if the region is in `skipped`.

        Raises:
            OSError, sqlite3.Error: a trace cannot be written. No data is lost.
        """
        try:
            with claimed_region(path) as region:
                if region is None:
                    return False
                identity, parts = region_identity(region), self.parts(region)
                if identity not in self._identities():
                    self._add(region, parts)
                    self._identities().add(identity)
                remove_files([*parts, path])
        except TraceError as error:
            self.skipped[path] = str(error)
            return False
        self.skipped.pop(path, None)
        return True

    def _identities(self) -> set[Identity]:
        """Return the processes that have a trace.

        A runner that is killed before it removes a process's region leaves both the trace and the
        region.
        """
        if self._taken is None:
            self._taken = {one for path in self.traces() for one in identities_in(path)}
        return self._taken

    def _add(self, region: Region, parts: list[str]) -> None:
        if self._conversion is None:
            self._conversion = RegionConversion(self._new_store())
        conversion, store = self._conversion, self._conversion.store
        try:
            with store.transaction():
                for path in recording_files(parts, region):
                    with opened_region(path) as opened:
                        process = conversion.add(opened)
                if self._further:
                    self._further(store, process, int(region["pid"]))
        except BaseException:
            self._conversion = None  # the conversion may have ids that are not in the store
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
                remove_files([path])
                raise OSError(str(error)) from error

    def close(self) -> None:
        """Close the trace to which regions are added."""
        conversion, self._conversion = self._conversion, None
        if conversion is not None:
            conversion.store.close()

    def write(
        self,
        output: str,
        step: Callable[[], None] = lambda: None,
        keeps_output: bool = True,
        known: Collection_[Identity] = (),
    ) -> str | None:
        """Merge the traces into one and return its path; None if nothing was recorded.

        The path is `output`, or one next to it if another process writes to `output`.

        Args:
            step: called after each merged trace.
            keeps_output: whether a file at `output` must be kept.
            known: processes that already have a trace elsewhere.

        Raises:
            QueryprofError, OSError, sqlite3.Error: the trace cannot be written. No data is lost.
        """
        self.close()
        traces = [path for path in self.traces() if set(identities_in(path)) - set(known)]
        if not traces:
            return None
        if is_being_written(output):
            output = path_with_pid(output)
        if len(traces) > 1:
            from queryprof.collect.merge import merge_traces

            merge_traces(output, traces, step)
        else:
            if keeps_output:
                refuse_to_replace(output)
            os.replace(traces[0], output)
        return output

    def remove(self) -> None:
        """Remove the directory and its contents. Only the process that created it may call this."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def remove_known_files(self) -> None:
        """Remove the directory and the files that recordings leave in it. Other files stay."""
        names = list_names(self.directory)
        ours = [name for name in names if name == RUNNER or name.endswith(ENDINGS)]
        remove_files([os.path.join(self.directory, name) for name in ours])
        try:
            os.rmdir(self.directory)
        except OSError:
            return


def command_directories_of_trace(path: str) -> Iterator[CommandDirectory]:
    """Yield the directories of running or killed commands whose trace belongs at `path`."""
    directory, name = os.path.split(temporary_stem(os.path.abspath(path)))
    for one in sorted(list_names(directory)):
        is_named = one.startswith(f"{name}.") and one.endswith(SUFFIX)
        if is_named and _is_trusted(os.path.join(directory, one)):
            collection = CommandDirectory(os.path.join(directory, one))
            if os.path.exists(os.path.join(collection.directory, RUNNER)):
                yield collection


def _is_trusted(path: str) -> bool:
    """Return whether the path is a directory of this user (for root: of any user)."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and os.getuid() in (0, status.st_uid)


def recover_killed_command(collection: CommandDirectory, path: str) -> str | None:
    """Write the trace that a killed runner would have written, and return its path.

    Returns None if nothing was left, a process still runs, or the trace cannot be written.
    """
    with collection.claimed() as is_ours:
        if not is_ours or not collection.is_left:
            return None
        try:
            found = collection.regions
            if any(_has_living_process(one) for one in found):
                return None
            for one in found:
                collection.take(one)
            free = path_with_pid(path) if os.path.lexists(path) else path
            output = collection.write(free, known=identities_in(path))
        except (QueryprofError, OSError, sqlite3.Error):
            return None
        if not collection.regions:
            collection.remove_known_files()
    return output


def _has_living_process(path: str) -> bool:
    try:
        region = Region(path=path)
    except TraceError:
        return False
    try:
        return is_living(region) is not False
    finally:
        region.close()
