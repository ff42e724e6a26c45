"""From a trace to a Profile, with the recordings of processes that still run, or that left them
behind.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from queryprof.collect.convert import Conversion
from queryprof.collect.leftovers import Leftovers
from queryprof.collect.merge import add_opened
from queryprof.collect.recordings import MovedError, recordings_at
from queryprof.collect.recovery import bring_in, recorded_commands, taken_already
from queryprof.errors import TraceError
from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.loader import load_profile
from queryprof.trace.opening import (
    connect,
    of_present_version,
    opened_as_it_is_now,
    opened_file,
)
from queryprof.trace.store import TraceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.collect.recordings import Recording
    from queryprof.model import Profile
    from queryprof.region.region import Region

TRIES = 20
"""How often recordings that go on in the meantime are read."""


@contextmanager
def opened_beside(path: str, leftovers: Leftovers) -> Iterator[CheckedTrace]:
    """One of many traces, as `opened` has it. Raises TraceError."""
    with opened(path) if leftovers.may_be_of(path) else opened_file(path) as trace:
        yield trace


@contextmanager
def opened(path: str) -> Iterator[CheckedTrace]:
    """A trace of the present version, open for reading.

    Raises:
        TraceError: there is no such file, it is no trace, damaged, or of a newer version.
    """
    with _opened(path) as (trace, _):
        yield trace


@contextmanager
def _opened(path: str) -> Iterator[tuple[CheckedTrace, frozenset[int]]]:
    """The same, with the ids of its processes that still run."""
    bring_in(path)
    connection, running = _with_living(path)
    try:
        yield CheckedTrace(connection, path), running
    finally:
        connection.close()


def _with_living(path: str) -> tuple[sqlite3.Connection, frozenset[int]]:
    """A trace, with the recordings that are in none, and the ids of the processes that run."""
    for tries in range(TRIES):
        commands = recorded_commands(path)
        try:
            with ExitStack() as files:
                # In this order: a region that is taken in between is in both, and never in neither.
                recordings = recordings_at(path, files)
                taken = taken_already(path)
                if any(one.is_in_windows for one in recordings) and os.path.isfile(path):
                    taken.append(path)
                found = _sum_of(recordings, taken) if recordings or taken else None
                running = frozenset(one.identity[0] for one in recordings if one.is_running)
        except MovedError:
            if tries + 1 == TRIES:
                raise
            continue
        except TraceError:
            if recorded_commands(path) == commands:
                raise
            continue
        if recorded_commands(path) == commands:
            break
        if found is not None:  # a command has just ended, and its trace is made
            found.close()
    if found is not None:
        return found, running
    return of_present_version(connect(path), path), frozenset()


def _sum_of(recordings: Iterable[Recording], taken: Iterable[str]) -> sqlite3.Connection:
    """A trace in memory, with each process once.

    Raises:
        MovedError: a recording has gone on in between.
    """
    store = TraceStore(":memory:")
    try:
        for path in taken:
            with opened_as_it_is_now(path) as trace:
                add_opened(store, trace)
        known = store.identities()
        for one in recordings:
            conversion = Conversion(store)
            for region in one.regions() if one.identity not in known else ():
                conversion.add(region)
            one.refuse_changes()
    except BaseException:
        store.abandon()
        raise
    return store.connection


def read_profile(path: str) -> Profile:
    """The profile that a trace file holds.

    Raises:
        TraceError: as `opened`.
    """
    with _opened(path) as (trace, running):
        return replace(load_profile(trace), running=running)


def read_windows(path: str) -> Iterator[Profile]:
    """The profiles of the windows of a trace that have ended, each alone; of one that is in none,
    the whole.

    Raises:
        TraceError: as `opened`.
    """
    bring_in(path)
    with ExitStack() as files:
        in_windows = [one for one in recordings_at(path, files) if one.is_in_windows]
        if not in_windows:
            yield read_profile(path)
        elif os.path.isfile(path):
            with opened_file(path) as trace:
                yield load_profile(trace)
        for one in in_windows:
            for region in one.regions():
                if region is not one.region or not one.is_running:
                    yield _profile_of_window(region)


def _profile_of_window(region: Region) -> Profile:
    store = TraceStore(":memory:")
    try:
        Conversion(store).add(region)
        return profile_of(store.connection)
    finally:
        store.abandon()


def profile_of(connection: sqlite3.Connection) -> Profile:
    """The profile in a trace in memory."""
    return load_profile(CheckedTrace(connection, ":memory:"))
