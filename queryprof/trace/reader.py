"""From a trace file to a Profile. It changes no trace, and says in one line what is wrong."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from queryprof.errors import TraceError
from queryprof.trace.checked_rows import CheckedTrace, reading, refuse_other_objects
from queryprof.trace.convert import Conversion
from queryprof.trace.header import address, is_sqlite
from queryprof.trace.loader import load_profile
from queryprof.trace.recovery import bring_in, open_living, recorded_commands, taken_already
from queryprof.trace.schema import APPLICATION_ID, SCHEMA_VERSION, migration
from queryprof.trace.store import TraceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queryprof.model import Profile
    from queryprof.trace.identity import Identity
    from queryprof.trace.region import Region


@contextmanager
def opened_as_it_is_now(path: str) -> Iterator[CheckedTrace]:
    """A trace that another process may add to, as it is at one moment. Raises TraceError, as `opened`."""
    copy = sqlite3.connect(":memory:")
    try:
        connection = _connect(path)
        try:
            with reading(path, "header"):
                connection.backup(copy)
        finally:
            connection.close()
        copy = _of_present_version(copy, path)
        yield CheckedTrace(copy, path)
    finally:
        copy.close()


@contextmanager
def opened(path: str) -> Iterator[CheckedTrace]:
    """A trace of the present version, open for reading.

    Raises:
        TraceError: there is no such file, it is no trace, damaged, or of a newer version.
    """
    bring_in(path)
    connection = _with_living(path)
    try:
        yield CheckedTrace(connection, path)
    finally:
        connection.close()


def _with_living(path: str) -> sqlite3.Connection:
    """A trace, with what the processes have recorded that still run."""
    while True:
        commands = recorded_commands(path)
        try:
            with ExitStack() as files:
                # In this order: what is taken meanwhile is in both, and never in neither.
                living = open_living(path, files)
                taken = taken_already(path)
                found = _sum_of(living, taken) if living or taken else None
        except TraceError:
            if recorded_commands(path) == commands:
                raise
            continue
        if recorded_commands(path) == commands:
            break
        if found is not None:  # a command has ended meanwhile, and its trace is made
            found.close()
    if found is not None:
        return found
    connection = _connect(path)
    try:
        return _of_present_version(connection, path)
    except BaseException:
        connection.close()
        raise


def _sum_of(living: Mapping[Identity, list[Region]], taken: Iterable[str]) -> sqlite3.Connection:
    """A trace in memory, of each process once."""
    from queryprof.trace.merge import add_opened

    store = TraceStore(":memory:")
    try:
        for path in taken:
            with opened_as_it_is_now(path) as trace:
                add_opened(store, trace)
        known = store.identities()
        for identity, regions in living.items():
            conversion = Conversion(store)
            for region in regions if identity not in known else ():
                conversion.add(region)
    except BaseException:
        store.abandon()
        raise
    return store.connection


def read_profile(path: str) -> Profile:
    """The profile that a trace file holds.

    Raises:
        TraceError: as `opened`.
    """
    with opened(path) as trace:
        return load_profile(trace)


def profile_of(connection: sqlite3.Connection) -> Profile:
    """The profile in a trace in memory."""
    return load_profile(CheckedTrace(connection, ":memory:"))


def _connect(path: str) -> sqlite3.Connection:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TraceError(f"{path}: cannot be read: is no file")
        if not is_sqlite(path):
            raise TraceError(f"{path}: is no queryprof trace")
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such trace") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise TraceError(f"{path}: cannot be read: {reason}") from error
    # A process that was killed may leave a journal, which SQLite must be free to roll back.
    mode = "rw" if os.path.exists(path + "-journal") and os.access(path, os.W_OK) else "ro"
    with reading(path, "header"):
        connection = sqlite3.connect(address(path, mode), uri=True, timeout=10)
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _of_present_version(connection: sqlite3.Connection, path: str) -> sqlite3.Connection:
    """The connection itself, or one to a copy in memory that was brought up to date."""
    with reading(path, "header"):
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise TraceError(f"{path}: is a SQLite database, but no queryprof trace")
    if version > SCHEMA_VERSION:
        raise TraceError(
            f"{path}: was written by a newer queryprof (trace version {version}, this one reads"
            f" {SCHEMA_VERSION}); upgrade queryprof"
        )
    refuse_other_objects(connection, path)
    if version == SCHEMA_VERSION:
        return connection
    if not version >= 1:
        raise TraceError(f"{path}: has trace version {version}, which no queryprof wrote")
    copy = sqlite3.connect(":memory:")
    with reading(path, "schema"):
        connection.backup(copy)
        connection.close()
        for number in range(version, SCHEMA_VERSION):
            copy.executescript(migration(number + 1))
    return copy
