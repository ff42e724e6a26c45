"""Write the traces of processes that ended without writing them.

Such processes were killed, executed another program, or left by os._exit. Runners that were killed
count as well.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import contextmanager
from time import sleep

from queryprof.collect.collection import command_directories_of_trace, recover_killed_command
from queryprof.collect.keep import write_trace
from queryprof.collect.output_path import (
    JOURNAL,
    is_being_written,
    path_with_pid,
    path_with_process,
)
from queryprof.collect.part_files import parts_of_process, recording_files
from queryprof.core.absence import absence_reason
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import TraceError
from queryprof.region.identity import region_identity, region_trace_path
from queryprof.region.part_names import parts_of_trace, trace_name
from queryprof.region.region import Region, claimed_region, has_header, opened_region
from queryprof.region.region_files import (
    PART_SUFFIX,
    checkpoint_path,
    checkpoints_of_trace,
    is_living,
    list_names,
    process_start_ticks,
    regions_of_trace,
    remove_files,
    resolve_directory,
    temporary_stem,
)
from queryprof.trace.header import is_sqlite
from queryprof.trace.processes import identities_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from queryprof.collect.recorded_files import RecordedFiles
    from queryprof.trace.processes import Identity

UNFINISHED = ".new"
"""End of the name of an unfinished trace."""

UNFINISHED_NS = 60_000_000_000
"""A file of this age is no longer being written, even if its process is not visible to this one."""

TOKEN = re.compile("[0-9a-f]+")
"""The format of region_files.unique_token."""

MAX_LOCK_TRIES, LOCK_RETRY_S = 200, 0.05
"""How many times, and at what interval, to try a lock. A stopped process that holds the lock must
not block the end of a program.
"""

_slow_locks: set[str] = set()
"""Directories whose lock could not be taken. Later traces in them do not wait again."""

MAX_MOVED = 2
"""Maximum number of regions that `move_to_disk` moves."""


def save_left_recordings(path: str, recorded: RecordedFiles | None = None) -> list[str]:
    """Write the traces of a family's ended processes to the paths that the processes chose.

    The family is the process that began with `path`, its children, and the command whose killed
    runner was to write `path`. Recordings in windows are not written: they move from memory to the
    disk. Never raises: recordings that cannot be written stay for the next call.

    Args:
        recorded: a reader's snapshot of all recordings.

    Returns:
        The paths of the traces.
    """
    if absence_reason():
        return []  # no process can record here
    written = []
    with directory_lock(os.path.dirname(os.path.abspath(path))):
        # A process's memory and its copies are one recording: see _save_region.
        regions, copies = regions_of_trace(path), checkpoints_of_trace(path)
        if recorded:
            regions += recorded.regions_of(path)
            copies += recorded.copies_of(path)
        for found in dict.fromkeys([*regions, *sort_newest_first(list(dict.fromkeys(copies)))]):
            try:
                with claimed_region(found) as region:
                    is_over = region is not None and is_living(region) is False
                    if region is not None and is_over and region["window_ns"]:
                        _move_to_disk(found, region, path, copies)
                        if recorded:
                            recorded.forget()
                    elif region is not None and is_over:
                        written += _save_region(found, region, path)
            except Exception:  # noqa: S112 this may run at the end of a recorded program
                continue
    for collection in command_directories_of_trace(path):
        output = recover_killed_command(collection, path)
        written += [output] if output else []
    _remove_unfinished(path)
    return written


@contextmanager
def directory_lock(directory: str) -> Iterator[None]:
    """Let one process at a time write the traces of others in a directory.

    Otherwise a process that finds a region and another that finds its copy would write two traces.
    Continues without the lock if there are no locks, or if the lock is held for long.
    """
    import fcntl

    file = -1
    try:
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for _ in range(1 if directory in _slow_locks else MAX_LOCK_TRIES):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                sleep(LOCK_RETRY_S)
        else:
            _slow_locks.add(directory)
    except OSError:
        pass
    try:
        yield
    finally:
        if file >= 0:
            os.close(file)


def sort_newest_first(copies: list[str]) -> list[str]:
    """Sort copies, newest first, because only the first copy of a region becomes a trace."""
    return sorted(copies, key=_last_alive_and_mtime, reverse=True)


def _move_to_disk(found: str, region: Region, path: str, copies: list[str]) -> None:
    """Move the region of an ended process in windows to the disk, next to the trace.

    Replaces the older copies.
    """
    if found.endswith(PART_SUFFIX):
        return
    older = [one for one in copies if _is_copy_of(one, region_identity(region))]
    _copy_sparse_file(found, checkpoint_path(path, int(region["pid"])))
    remove_files([found, *older])


def _is_copy_of(path: str, identity: Identity) -> bool:
    try:
        with opened_region(path) as region:
            found: Identity = region_identity(region)
            return found == identity
    except TraceError:
        return False


def _last_alive_and_mtime(path: str) -> tuple[int, int]:
    try:
        with opened_region(path) as region:
            return int(region["alive_unix_ns"]), _modified_ns(path)
    except TraceError:
        return 0, 0


def _save_region(found: str, region: Region, path: str) -> list[str]:
    """Write the trace of a region, and remove the region's files.

    Returns the paths of the traces; empty if the process already has a trace.
    """
    pid, trace, identity = (
        int(region["pid"]),
        _trace_path_for(region, path),
        region_identity(region),
    )
    parts, _ = parts_of_process(parts_of_trace(trace, pid), identity)
    files = recording_files(parts, region)
    written = []
    if not any(identity in identities_in(one) for one in traces_of_process(trace, pid)):
        free = path_with_pid(trace, pid) if is_being_written(trace) else trace
        written.append(write_trace(free, files, False, since_unix_ns=0, pid=pid))
        _give_to_owner(written[-1], region)
    remove_files([*parts, found])
    return written


def _give_to_owner(trace: str, region: Region) -> None:
    """Give a trace that root wrote to the user of the recorded process."""
    owner = os.fstat(region.file)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(trace, owner.st_uid, owner.st_gid, follow_symlinks=False)


def traces_of_process(trace: str, pid: int) -> list[str]:
    """Return a trace's path, and the traces next to it that have this process id."""
    directory, name = os.path.split(path_with_process(trace, pid))
    stem, extension = os.path.splitext(name)
    beside_it = [
        os.path.join(directory, one)
        for one in list_names(directory)
        if one.startswith(stem) and one.endswith(extension)
    ]
    return [trace, *beside_it]


def _trace_path_for(region: Region, path: str) -> str:
    """Return the path for the trace of a region that was found by `path`.

    The path recorded in the region is used only if it is in the same directory and has a similar
    name: a path from a file must not lead elsewhere.
    """
    path = resolve_directory(path)
    stem, extension = os.path.splitext(path)
    named = resolve_directory(region_trace_path(region))
    is_like_it = named.startswith(f"{stem}-") and named.endswith(extension)
    same_place = os.path.dirname(named) == os.path.dirname(path)
    return (
        named
        if named == path or (same_place and is_like_it)
        else path_with_process(path, int(region["pid"]))
    )


def _remove_unfinished(path: str) -> None:
    """Remove the traces and copies of regions that killed processes had not finished.

    Their sources still exist.
    """
    for pid, unfinished in (*_unfinished_traces(path), *_unfinished_copies(path)):
        is_old = unix_ns() - _modified_ns(unfinished) > UNFINISHED_NS
        if is_old and pid.isdecimal() and not process_start_ticks(int(pid)):
            remove_files([unfinished, unfinished + JOURNAL])


def _unfinished_traces(path: str) -> Iterator[tuple[str, str]]:
    """Yield the process id in the name of each unfinished trace, and its path."""
    directory, name = os.path.split(temporary_stem(os.path.abspath(path)))
    for one in list_names(directory):
        rest = one.removeprefix(f"{name}.").removesuffix(UNFINISHED)
        pid, _, its_token = rest.partition("-")
        unfinished = os.path.join(directory, one)
        is_named = one == f"{name}.{rest}{UNFINISHED}" and TOKEN.fullmatch(its_token)
        if is_named and _may_be_database(unfinished):
            yield pid, unfinished


def _unfinished_copies(path: str) -> Iterator[tuple[str, str]]:
    """Yield the process id in the name of each region's copy without a header, and its path."""
    for copy in checkpoints_of_trace(os.path.abspath(path)):
        if not has_header(copy):
            yield copy.removesuffix(PART_SUFFIX).rsplit(".", 2)[-2], copy


def _may_be_database(path: str) -> bool:
    """Return whether a file is empty or begins like a database."""
    try:
        status = os.lstat(path)
        return stat.S_ISREG(status.st_mode) and (not status.st_size or is_sqlite(path))
    except OSError:
        return False


def traces_made_so_far(path: str) -> list[str]:
    """Return the traces that a command's processes have written so far. The command may still be
    running, or `queryprof run` may have been killed.
    """
    traces = [
        trace for collection in command_directories_of_trace(path) for trace in collection.traces()
    ]
    return [trace for trace in traces if _read_bytes(trace)]  # an empty file has just been created


def _read_bytes(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def child_traces(path: str, since_unix_ns: int, pids: Collection[int] = ()) -> list[str]:
    """Return the traces of other processes of the recording at `path` that began at
    `since_unix_ns` or later. A trace may be written already, or still to be written.

    They are traces of children, and of earlier programs in the same process (os.execv).

    Args:
        pids: the processes of the trace at `path`.
    """
    directory, name = os.path.split(resolve_directory(path))
    stem, extension = os.path.splitext(name)
    found = []
    for one in list_names(directory):
        pid = one.removeprefix(f"{stem}-").removesuffix(extension).partition("-")[0]
        trace = os.path.join(directory, one)
        if one.startswith(f"{stem}-") and one.endswith(extension) and pid.isdecimal():
            found += [
                trace
                for of, start, _ in identities_in(trace)
                if of == int(pid) and (start >= since_unix_ns or of in pids)
            ][:1]
    windows = {trace_name(one): one for one in list_names(directory)}
    for trace, part in windows.items():
        pid = trace.removeprefix(f"{stem}-").removesuffix(extension).partition("-")[0]
        if trace.startswith(f"{stem}-") and trace.endswith(extension) and pid.isdecimal():
            try:
                with opened_region(os.path.join(directory, part)) as region:
                    began_then = region_identity(region)[1] >= since_unix_ns
                    found += [os.path.join(directory, trace)] * began_then
            except TraceError:
                continue
    for region_path in (*regions_of_trace(path), *checkpoints_of_trace(path)):
        try:
            with opened_region(region_path) as region:
                found += [region_trace_path(region)] * (region_identity(region)[1] >= since_unix_ns)
        except (TraceError, ValueError):
            continue
    return sorted({one for one in map(resolve_directory, found) if one != resolve_directory(path)})


def recorded_commands(path: str) -> list[str]:
    """Return the directories of the commands that will write `path`."""
    return [collection.directory for collection in command_directories_of_trace(path)]


def move_to_disk(paths: list[str], family: str) -> None:
    """Move up to two regions of ended processes of a family from memory to the disk.

    Otherwise a program whose forked children leave by os._exit would fill the memory. Never raises.
    """
    moved = 0
    for found in sorted(paths, key=_modified_ns):
        try:
            with opened_region(found) as region:
                if moved == MAX_MOVED or is_living(region) is not False:
                    continue
                target = checkpoint_path(family, int(region["pid"]))
            _copy_sparse_file(found, target)
        except (TraceError, OSError, ValueError):
            continue
        remove_files([found])
        moved += 1


def _modified_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _copy_sparse_file(path: str, target: str) -> None:
    """Copy a sparse file. Leaves no file on failure. Raises OSError."""
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(copy, 0o600)
            owner = os.fstat(source)
            if owner.st_uid != os.geteuid():  # if root makes the copy, it still belongs to the user
                os.fchown(copy, owner.st_uid, owner.st_gid)
            _copy_data(source, copy)
        except BaseException:
            remove_files([target])
            raise
        finally:
            os.close(copy)
    finally:
        os.close(source)


def _copy_data(source: int, copy: int) -> None:
    size, at = os.fstat(source).st_size, 0
    os.truncate(copy, size)
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:  # no more data
            return
        end = os.lseek(source, at, os.SEEK_HOLE)
        data = os.pread(source, end - at, at)
        at += os.pwrite(copy, data, at)  # on a full disk, the next write fails
