"""Writes the traces of processes that ended without writing them: they were killed, executed
another program, or left by os._exit; those of killed runners, too.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import contextmanager
from time import sleep

from queryprof.collect.collection import beside_trace, recover
from queryprof.collect.keep import write_trace
from queryprof.collect.output_path import (
    JOURNAL,
    beside,
    is_written,
    with_process,
)
from queryprof.collect.part_files import files_of, of_process
from queryprof.core.absence import absence
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import TraceError
from queryprof.region.identity import identity_of, trace_of
from queryprof.region.part_names import parts_of, trace_name
from queryprof.region.region import Region, claimed_region, opened_region
from queryprof.region.region_files import (
    PART_SUFFIX,
    checkpoint_of,
    checkpoints_of,
    is_living,
    names_in,
    nearby,
    regions_of,
    remove,
    resolved,
    started_at,
)
from queryprof.trace.header import is_sqlite
from queryprof.trace.processes import identities_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queryprof.collect.recorded_files import RecordedFiles
    from queryprof.trace.processes import Identity

UNFINISHED = ".new"
UNFINISHED_NS = 60_000_000_000
"""A file of this age is no longer written to by a process that cannot be seen from here."""

TOKEN = re.compile("[0-9a-f]+")
"""As region_files.token makes it."""

PATIENCE, PATIENCE_STEP_S = 200, 0.05
"""How often, and how far apart, a lock is tried: a program's end must not wait for a
stopped one."""

_held: set[str] = set()
"""Directories whose lock was waited for in vain: of many traces there, one waits."""

MOVED = 2
"""Regions that `put_aside` moves."""


def bring_in(path: str, recorded: RecordedFiles | None = None) -> list[str]:
    """Writes the traces of the ended processes of a family, each where its process would have: that
    of the process that began with `path`, and those of its children; and that of a recorded command
    whose runner was killed. Returns the paths of the traces. Recordings in windows stay, and go
    from the memory to the disk.

    Args:
        recorded: what a reader has looked up, who wants all that is left.

    Never raises: what cannot be written stays for the next time.
    """
    if absence():
        return []  # no process records here
    written = []
    with alone_in(os.path.dirname(os.path.abspath(path))):
        # A process's memory and the copies of it are one recording: see _bring_in.
        regions, copies = regions_of(path), checkpoints_of(path)
        if recorded:
            regions += recorded.regions_of(path)
            copies += recorded.copies_of(path)
        for found in dict.fromkeys([*regions, *newest_first(list(dict.fromkeys(copies)))]):
            try:
                with claimed_region(found) as region:
                    is_over = region is not None and is_living(region) is False
                    if region is not None and is_over and region["window_ns"]:
                        _move_to_disk(found, region, path, copies)
                        if recorded:
                            recorded.forget()
                    elif region is not None and is_over:
                        written += _bring_in(found, region, path)
            except Exception:  # noqa: S112 this may run at the end of a recorded program
                continue
    for collection in beside_trace(path):
        output = recover(collection, path)
        written += [output] if output else []
    _remove_unfinished(path)
    return written


@contextmanager
def alone_in(directory: str) -> Iterator[None]:
    """One process at a time writes traces of others in a directory: two that find a process's
    memory and a copy of it would write both. Where there are no locks, or one is held for long, it
    goes on.
    """
    import fcntl

    file = -1
    try:
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for _ in range(1 if directory in _held else PATIENCE):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                sleep(PATIENCE_STEP_S)
        else:
            _held.add(directory)
    except OSError:
        pass
    try:
        yield
    finally:
        if file >= 0:
            os.close(file)


def newest_first(copies: list[str]) -> list[str]:
    """Of the copies of one region, the first that is written to a trace counts."""
    return sorted(copies, key=_turn, reverse=True)


def _move_to_disk(found: str, region: Region, path: str, copies: list[str]) -> None:
    """Makes the memory that a process in windows has left the one copy of it beside the trace."""
    if found.endswith(PART_SUFFIX):
        return
    older = [one for one in copies if _is_of(one, identity_of(region))]
    _copy(found, checkpoint_of(path, int(region["pid"])))
    remove([found, *older])


def _is_of(path: str, identity: Identity) -> bool:
    try:
        with opened_region(path) as region:
            found: Identity = identity_of(region)
            return found == identity
    except TraceError:
        return False


def _turn(path: str) -> tuple[int, int]:
    try:
        with opened_region(path) as region:
            return int(region["turn_unix_ns"]), _changed_ns(path)
    except TraceError:
        return 0, 0


def _bring_in(found: str, region: Region, path: str) -> list[str]:
    """Writes the trace of a region, and removes the files that it was made of; returns the paths of
    the traces: none, if there is one of this process already.
    """
    pid, trace, identity = int(region["pid"]), _place_of(region, path), identity_of(region)
    parts, _ = of_process(parts_of(trace, pid), identity)
    files = files_of(parts, region)
    written = []
    if not any(identity in identities_in(one) for one in traces_of_process(trace, pid)):
        free = beside(trace, pid) if is_written(trace) else trace
        written.append(write_trace(free, files, False, since_unix_ns=0, pid=pid))
        _give_to_owner(written[-1], region)
    remove([*parts, found])
    return written


def _give_to_owner(trace: str, region: Region) -> None:
    """What root brings in is its process's user's."""
    owner = os.fstat(region.file)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(trace, owner.st_uid, owner.st_gid, follow_symlinks=False)


def traces_of_process(trace: str, pid: int) -> list[str]:
    """A trace, and those of processes of this id beside it."""
    directory, name = os.path.split(with_process(trace, pid))
    stem, extension = os.path.splitext(name)
    beside_it = [
        os.path.join(directory, one)
        for one in names_in(directory)
        if one.startswith(stem) and one.endswith(extension)
    ]
    return [trace, *beside_it]


def _place_of(region: Region, path: str) -> str:
    """The path of the trace of a region that was found by `path`: the recorded one, if that is in
    the same directory and has a similar name; a path that is read from a file must not lead
    elsewhere.
    """
    path = resolved(path)
    stem, extension = os.path.splitext(path)
    named = resolved(trace_of(region))
    is_like_it = named.startswith(f"{stem}-") and named.endswith(extension)
    same_place = os.path.dirname(named) == os.path.dirname(path)
    return (
        named
        if named == path or (same_place and is_like_it)
        else with_process(path, int(region["pid"]))
    )


def _remove_unfinished(path: str) -> None:
    """Removes unfinished traces of processes that were killed while writing: their sources are
    still there.
    """
    directory, name = os.path.split(nearby(os.path.abspath(path)))
    for one in names_in(directory):
        rest = one.removeprefix(f"{name}.").removesuffix(UNFINISHED)
        pid, _, its_token = rest.partition("-")
        unfinished = os.path.join(directory, one)
        is_named = one == f"{name}.{rest}{UNFINISHED}" and TOKEN.fullmatch(its_token)
        is_one = is_named and pid.isdecimal() and not started_at(int(pid))
        if is_one and _is_begun(unfinished) and unix_ns() - _changed_ns(unfinished) > UNFINISHED_NS:
            remove([unfinished, unfinished + JOURNAL])


def _is_begun(path: str) -> bool:
    """Whether a file has the beginning of a database, or nothing yet."""
    try:
        status = os.lstat(path)
        return stat.S_ISREG(status.st_mode) and (not status.st_size or is_sqlite(path))
    except OSError:
        return False


def taken_already(path: str) -> list[str]:
    """The traces taken so far of a recorded command that still runs, or whose runner was killed."""
    traces = [trace for collection in beside_trace(path) for trace in collection.traces()]
    return [trace for trace in traces if _bytes_of(trace)]  # an empty one is just being made


def _bytes_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def others_of(path: str, since_unix_ns: int) -> list[str]:
    """The paths of traces of other processes of the recording at `path`, which began then: of its
    children, written already, or to be written by those that still run.
    """
    directory, name = os.path.split(resolved(path))
    stem, extension = os.path.splitext(name)
    found = []
    for one in names_in(directory):
        pid = one.removeprefix(f"{stem}-").removesuffix(extension).partition("-")[0]
        trace = os.path.join(directory, one)
        if one.startswith(f"{stem}-") and one.endswith(extension) and pid.isdecimal():
            found += [
                trace
                for of, start, _ in identities_in(trace)
                if of == int(pid) and start >= since_unix_ns
            ][:1]
    windows = {trace_name(one): one for one in names_in(directory)}
    for trace, part in windows.items():
        pid = trace.removeprefix(f"{stem}-").removesuffix(extension).partition("-")[0]
        if trace.startswith(f"{stem}-") and trace.endswith(extension) and pid.isdecimal():
            try:
                with opened_region(os.path.join(directory, part)) as region:
                    began_then = identity_of(region)[1] >= since_unix_ns
                    found += [os.path.join(directory, trace)] * began_then
            except TraceError:
                continue
    for region_path in regions_of(path):
        try:
            with opened_region(region_path) as region:
                found += [trace_of(region)] * (identity_of(region)[1] >= since_unix_ns)
        except (TraceError, ValueError):
            continue
    return sorted({one for one in map(resolved, found) if one != resolved(path)})


def recorded_commands(path: str) -> list[str]:
    """The directories of such commands."""
    return [collection.directory for collection in beside_trace(path)]


def put_aside(paths: list[str], family: str) -> None:
    """Moves the regions of ended processes of a family, two at the most, from the memory to the
    disk: a program that forks children which leave by os._exit would fill the memory. Never raises.
    """
    moved = 0
    for found in sorted(paths, key=_changed_ns):
        try:
            with opened_region(found) as region:
                if moved == MOVED or is_living(region) is not False:
                    continue
                target = checkpoint_of(family, int(region["pid"]))
            _copy(found, target)
        except (TraceError, OSError, ValueError):
            continue
        remove([found])
        moved += 1


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _copy(path: str, target: str) -> None:
    """Copies all of a sparse file to a new one, or makes none. Raises OSError."""
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(copy, 0o600)
            owner = os.fstat(source)
            if owner.st_uid != os.geteuid():  # root reads a user's: the copy stays the user's
                os.fchown(copy, owner.st_uid, owner.st_gid)
            _copy_data(source, copy)
        except BaseException:
            remove([target])
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
        at += os.pwrite(copy, data, at)  # on a full disk, the rest fails
