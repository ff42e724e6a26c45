"""Read a trace into a Profile, including recordings that are not in the trace file.

Such recordings belong to running processes, or were left by ended ones.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

from queryprof.collect.convert import RegionConversion
from queryprof.collect.leftovers import LeftRecordings
from queryprof.collect.merge import MergedSums, add_opened
from queryprof.collect.recent_calls import NO_CALLS, CallChoice
from queryprof.collect.recorded_files import RecordedFiles
from queryprof.collect.recordings import MovedError, recordings_at
from queryprof.collect.recovery import recorded_commands, save_left_recordings, traces_made_so_far
from queryprof.core.absence import absence_reason
from queryprof.errors import TraceError
from queryprof.region.region import is_part, opened_region
from queryprof.trace.checked_rows import CheckedTrace, raising_trace_errors
from queryprof.trace.header import MAGIC
from queryprof.trace.loader import load_profile
from queryprof.trace.opening import (
    checked_version,
    closed_on_error,
    connect_read_only,
    opened_finished_trace,
    opened_snapshot,
)
from queryprof.trace.processes import Identity
from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.collect.recordings import ProcessRecording
    from queryprof.model import Profile
    from queryprof.region.region import Region

IN_MEMORY = ":memory:: "
"""Start of the errors about a trace in memory."""

MAX_TRIES = 20
"""How many times to read recordings that change while being read."""

Found = tuple[sqlite3.Connection, frozenset[Identity], tuple[str, ...]]
"""A trace, its running processes, and why some recordings are missing."""

Opened = tuple[CheckedTrace, frozenset[Identity], tuple[str, ...]]
"""An open trace, its running processes, and why some recordings are missing."""


@contextmanager
def opened_trace_of_many(
    path: str, leftovers: LeftRecordings, leave_out: Callable[[str], None]
) -> Iterator[CheckedTrace]:
    """Open one of many traces, like `opened_trace`. Raises TraceError."""
    with _opened_trace_of_many(path, leftovers) as (trace, _, left_out):
        for reason in left_out:
            leave_out(reason)
        yield trace


@contextmanager
def _opened_trace_of_many(
    path: str, leftovers: LeftRecordings, calls: CallChoice = NO_CALLS
) -> Iterator[Opened]:
    if is_part(path) or leftovers.may_have_recordings_of(path):
        with _opened_with_recordings(path, leftovers.recorded, calls) as found:
            yield found
    else:
        with opened_finished_trace(path) as trace:
            yield trace, frozenset(), ()


@contextmanager
def opened_trace(
    path: str, leave_out: Callable[[str], None] = lambda _: None
) -> Iterator[CheckedTrace]:
    """Open a trace of the present version for reading.

    Args:
        leave_out: called with one line for each recording that cannot be read.

    Raises:
        TraceError: the file is missing, not a trace, damaged, or of another version.
    """
    with _opened_with_recordings(path) as (trace, _, left_out):
        for reason in left_out:
            leave_out(reason)
        yield trace


@contextmanager
def _opened_with_recordings(
    path: str,
    recorded: RecordedFiles | None = None,
    calls: CallChoice = NO_CALLS,
    report_recovered: Callable[[str], None] = lambda _: None,
) -> Iterator[Opened]:
    recorded = recorded or RecordedFiles()
    for recovered in save_left_recordings(path, recorded):
        report_recovered(recovered)
    connection, running, left_out = _read_with_recordings(path, recorded, calls)
    try:
        yield CheckedTrace(connection, path), running, left_out
    finally:
        connection.close()


def _read_with_recordings(path: str, recorded: RecordedFiles, calls: CallChoice) -> Found:
    """Read a trace and the recordings that are not in it.

    Also returns the ids of running processes, and the reasons for missing recordings.
    """
    if is_part(path):
        return _converted_part(path, calls), frozenset(), ()
    if absence_reason():
        return checked_version(connect_read_only(path), path), frozenset(), ()
    moved: TraceError | None = None
    for _ in range(MAX_TRIES):
        commands = recorded_commands(path)
        try:
            found = _read_once(path, recorded, calls)
        except MovedError as error:
            moved = error
            continue
        except TraceError:
            if recorded_commands(path) == commands:
                raise
            continue
        if recorded_commands(path) == commands:
            return found or (checked_version(connect_read_only(path), path), frozenset(), ())
        if found:  # a command has just ended and has written its trace
            found[0].close()
    raise moved or TraceError(f"{path}: it kept changing while being read; try again")


def _read_once(path: str, recorded: RecordedFiles, calls: CallChoice) -> Found | None:
    """Read a trace together with its recordings; None if there are no recordings.

    Raises:
        MovedError: the recording's files changed meanwhile.
    """
    with ExitStack() as files:
        # List the taken traces last. A region that is taken in between is then in both lists, not
        # in neither.
        unread: list[str] = []
        recordings = recordings_at(path, files, recorded, unread)
        taken = traces_made_so_far(path)
        if any(one.is_beside_its_trace for one in recordings) and _has_content(path):
            taken.append(path)
        if not recordings and not taken:
            if unread and not _has_content(path):
                raise TraceError(unread[0])
            return None
        running = frozenset(one.identity for one in recordings if one.is_running)
        left_out = (*unread, *(reason for one in recordings for reason in one.left_out))
        connection, damaged = _sum_of_readable_recordings(recordings, taken, calls)
        return connection, running, (*left_out, *damaged)


def _has_content(path: str) -> bool:
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _converted_part(path: str, calls: CallChoice) -> sqlite3.Connection:
    """Convert a single part to a trace in memory."""
    store = TraceStore(":memory:")
    try:
        with opened_region(path) as region:
            RegionConversion(store, calls=calls).add(region)
    except BaseException:
        store.abandon()
        raise
    return store.connection


def _sum_of_readable_recordings(
    recordings: list[ProcessRecording], taken: list[str], calls: CallChoice
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Add all readable recordings, and return why others cannot be read.

    Raises:
        MovedError: a recording moved on.
        TraceError: no recording is readable.
    """
    connection: sqlite3.Connection | None = None
    try:
        connection = _sum_of_recordings(recordings, taken, calls)
        _refuse_impossible_values(connection)
        return connection, ()
    except MovedError:
        raise
    except TraceError:
        faults = {
            region.path: _region_fault(region)
            for one in recordings
            for region in one.regions(passes_moved=True)
        }
        damaged = {path: fault for path, fault in faults.items() if fault}
        if not damaged or (len(damaged) == len(faults) and not taken):
            if connection:  # the reader finds the same fault and reports its source
                return connection, ()
            raise
    if connection:
        connection.close()
    found = _sum_of_recordings(recordings, taken, calls, damaged)
    return found, tuple(damaged.values())


def _refuse_impossible_values(connection: sqlite3.Connection) -> None:
    """Raise TraceError if a trace in memory has values that no recording produces."""
    trace = CheckedTrace(connection, ":memory:")
    for table in TABLES:
        for _ in trace.rows(table.name, table.names):
            pass


def _region_fault(region: Region) -> str:
    """Return why a region's rows cannot be read, or ""."""
    try:
        _window_profile(region)
    except TraceError as error:
        reason = str(error).removeprefix(IN_MEMORY)
        return reason if reason.startswith(region.path) else f"{region.path}: {reason}"
    return ""


def _sum_of_recordings(
    recordings: Iterable[ProcessRecording],
    taken: Iterable[str],
    calls: CallChoice,
    skipped: Container[str] = (),
) -> sqlite3.Connection:
    """Return a trace in memory with each process once.

    Args:
        skipped: paths of files to skip.

    Raises:
        MovedError: a recording moved on.
    """
    store = TraceStore(":memory:")
    try:
        for path in taken:
            with opened_snapshot(path) as trace:
                add_opened(store, trace, calls=calls)
        known = store.identities()
        for one in recordings:
            conversion = RegionConversion(store, calls=calls)
            for region in one.regions() if one.identity not in known else ():
                if region.path not in skipped:
                    conversion.add(region)
            one.refuse_changes()
    except BaseException:
        store.abandon()
        raise
    return store.connection


def read_profile(
    path: str,
    calls: CallChoice = NO_CALLS,
    report_recovered: Callable[[str], None] = lambda _: None,
) -> Profile:
    """Read the profile of a trace file.

    Args:
        calls: which of the newest calls of each process to read.
        report_recovered: called with the path of each trace of ended processes that this call
            writes.

    Raises:
        TraceError: see `opened_trace`.
    """
    opened = _opened_with_recordings(path, None, calls, report_recovered)
    with opened as (trace, running, left_out):
        profile = load_profile(trace, calls.limit > 0)
        return replace(profile, running=running, left_out=left_out)


def read_profiles(
    paths: Iterable[str], step: Callable[[], None] = lambda: None, calls: CallChoice = NO_CALLS
) -> tuple[Profile, int]:
    """Read several traces as one profile.

    Traces that cannot be read are skipped and listed in the profile.

    Args:
        step: called after each trace.
        calls: which of the newest calls of each process to read.

    Returns:
        The profile, and the number of processes that are in more than one trace. They count each
        time.

    Raises:
        TraceError: no trace can be read, or the sums are too large for one trace.
    """
    leftovers = LeftRecordings()
    sums = MergedSums(TraceStore(":memory:"), calls=calls)
    running: set[Identity] = set()
    left_out: list[str] = []
    try:
        for path in paths:
            try:
                with _opened_trace_of_many(path, leftovers, calls) as found:
                    trace, now, missing = found
                    sums.add(trace)
                running |= now
                left_out += missing
            except TraceError as error:
                left_out.append(str(error))
            step()
        if left_out and not sums.known:
            raise TraceError(left_out[0])
        profile = profile_from_connection(sums.store.connection, calls)
    finally:
        sums.store.abandon()
    return replace(profile, running=frozenset(running), left_out=tuple(left_out)), sums.repeated


def profile_from_content(content: bytes, name: str) -> Profile:
    """Return the profile in the content of a trace file, without opening any file.

    Args:
        name: the file's name, for messages.

    Raises:
        TraceError: the content is not a trace, damaged, or of another version.
    """
    if not content.startswith(MAGIC):
        raise TraceError(f"{name}: not a queryprof trace")
    connection = sqlite3.connect(":memory:")
    with closed_on_error(connection), raising_trace_errors(name, "header"):
        connection.deserialize(content)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
    with closing(checked_version(connection, name)):
        return load_profile(CheckedTrace(connection, name))


def read_windows(path: str, leave_out: Callable[[str], None]) -> Iterator[Profile]:
    """Yield a profile for each ended window of a trace. For a trace without windows, yield one
    profile.

    Args:
        leave_out: called with one line for each recording that cannot be read.

    Raises:
        TraceError: see `opened_trace`.
    """
    save_left_recordings(path)
    with ExitStack() as files:
        in_windows = [one for one in recordings_at(path, files) if one.is_in_windows]
        if not in_windows:
            profile = read_profile(path)
            for reason in profile.left_out:
                leave_out(reason)
            yield profile
        elif _has_content(path):
            with opened_finished_trace(path) as trace:
                yield load_profile(trace)
        for one in in_windows:
            for reason in one.left_out:
                leave_out(reason)
            for region in one.regions(passes_moved=True):
                if region is not one.region or not one.is_running:
                    try:
                        profile = _window_profile(region)
                    except TraceError as error:
                        leave_out(f"{region.path}: {str(error).removeprefix(IN_MEMORY)}")
                        continue
                    yield profile


def _window_profile(region: Region) -> Profile:
    store = TraceStore(":memory:")
    try:
        RegionConversion(store, calls=NO_CALLS).add(region)
        return profile_from_connection(store.connection)
    finally:
        store.abandon()


def profile_from_connection(
    connection: sqlite3.Connection, calls: CallChoice = NO_CALLS
) -> Profile:
    """Return the profile of a trace in memory."""
    return load_profile(CheckedTrace(connection, ":memory:"), calls.limit > 0)
