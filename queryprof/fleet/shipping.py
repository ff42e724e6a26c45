"""Sends the windows of recordings that have ended to a store, each once, and deletes them.

The files of a window, service, version and environment are one batch. A batch is always the same
processes and windows, whose names are those of its files in the store: sent again after a failure
or a kill, they take the place of themselves.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Self

from queryprof.autoload import program_named_in
from queryprof.collect.closed_windows import closed_windows, has_living
from queryprof.collect.convert import Conversion
from queryprof.collect.merge import merge_traces
from queryprof.collect.reader import IN_MEMORY, profile_of
from queryprof.errors import QueryprofError, TraceError
from queryprof.fleet.batches import Batches
from queryprof.fleet.flat import Given, host_windows
from queryprof.fleet.names import identifier
from queryprof.fleet.parquet_files import name_of, write
from queryprof.region.identity import facts_of, identity_of
from queryprof.region.region import opened_region
from queryprof.trace.checked_rows import CheckedTrace
from queryprof.trace.store import TraceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queryprof.collect.closed_windows import Window
    from queryprof.fleet.batches import Batch, Taken
    from queryprof.fleet.flat import HostWindow
    from queryprof.fleet.location import Location
    from queryprof.model import Profile
    from queryprof.region.region import Region

STORED = "store"
"""A message: all that a store gets of a batch."""

Group = tuple[str, ...]
"""Host, service or program, version, environment, and the window's start: what is one batch."""


@dataclass(frozen=True, slots=True)
class Shipping:
    """What is sent.

    Attributes:
        kept_bytes: how much may wait on the disk for a store that is away.
        traces_share: of hosts, each day others, whose whole traces are sent, too: 0 to 1.
        is_anonymous: names of the program are replaced by their hashes.
    """

    kept_bytes: int
    traces_share: float = 0.0
    is_anonymous: bool = False


class AwayError(QueryprofError):
    """The store has a batch, and the telemetry has not."""

    def __init__(self, reason: QueryprofError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Sent(NamedTuple):
    """What one run has sent.

    Attributes:
        windows: files of processes; files: in the store.
    """

    windows: int
    files: int


class Shipper:
    """Sends what is recorded in a directory, for as long as the context lasts the only one.

    Args:
        places: the directory in which processes record in windows, or paths of traces in it.
        location: of the store; None: there is none.
        note: called with what is to be known, a line each.
        telemetry: called with the profile of each batch, and with the batch, which knows what of it
            was taken before.

    Attributes:
        directory: its path.

    Raises:
        QueryprofError: another one sends from there, or it cannot be written to.
    """

    def __init__(
        self,
        places: Sequence[str],
        location: Location | None,
        shipping: Shipping,
        note: Callable[[str], None],
        telemetry: Callable[[Profile, Batch], None] | None = None,
    ) -> None:
        self._places = places
        self.directory = directory_of(places[0])
        self._location = location
        self._shipping = shipping
        self._note = note
        self._telemetry = telemetry
        self._batches = Batches(self.directory)
        self._context = ExitStack()
        self._lost = 0  # so far

    def __enter__(self) -> Self:
        self._context.enter_context(self._batches.alone())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._context.close()

    def run(self) -> Sent:
        """Takes the windows that have ended, and sends all that waits.

        Raises:
            QueryprofError, OSError: the store or the telemetry refuses; the rest waits.
        """
        self._batches.open_again()
        for windows in self._groups():
            self._batches.take(windows)
        self._drop()
        sent = written = 0
        away: QueryprofError | None = None
        for name in self._batches.waiting():
            with self._batches.opened(name) as batch:
                files = batch.files()
                try:
                    written += self._send(batch, reaches_telemetry=not away)
                except AwayError as error:  # the store has it: the others go on
                    away = away or error.reason
                    continue
                sent += len(files)
        if away:
            raise away
        return Sent(sent, written)

    def _drop(self) -> None:
        """Drops what there is no room for."""
        lost = self._batches.drop_beyond(self._shipping.kept_bytes)
        self._lost += lost
        if lost:
            are = "window" if self._lost == 1 else "windows"
            why = "more than --keep waits to be sent"
            self._note(f"{self.directory}: {self._lost:,} {are} lost: {why}")

    def has_living(self) -> bool:
        """Whether a process that runs records there."""
        return any(map(has_living, self._places))

    def waits(self) -> int:
        """How many windows wait to be sent."""
        return self._batches.count()

    def _groups(self) -> list[list[Window]]:
        """The windows that have ended, by what becomes one batch."""
        groups: dict[Group, list[Window]] = {}
        for place in self._places:
            windows, left_out = closed_windows(place)
            for reason in left_out:
                self._note(f"left out: {reason}")
            for window in windows:
                try:
                    with opened_region(window.path) as region:
                        groups.setdefault(_group(region), []).append(window)
                except TraceError as error:
                    if os.path.lexists(window.path):
                        self._note(f"left out: {error}")
        return [groups[key] for key in sorted(groups)]

    def _send(self, batch: Batch, reaches_telemetry: bool) -> int:
        """Sends a batch, and returns of how many files.

        Raises:
            AwayError: the telemetry does not take it, or is known to be away.
        """
        lost, written = batch.lost, 0
        with ExitStack() as stores:
            store, profile = self._sound_sum(batch, stores)
            if self._location and not batch.has(STORED):
                for window in host_windows(profile, Given(is_anonymous=self._hides)):
                    written += len(write(self._location, window, lost))
                    lost = 0 if window.tables.get("aggregate") else lost
                    if self._is_sampled(window):
                        self._location.put(name_of("trace", window, ".qprof"), _trace(store))
                        written += 1
            if self._telemetry:
                if self._location and not batch.has(STORED):
                    batch.add(STORED)
                try:
                    if not reaches_telemetry:
                        raise QueryprofError("the telemetry is away")
                    self._telemetry(profile, batch)
                except QueryprofError as error:
                    raise AwayError(error) from error
        if lost and not batch.has(STORED):
            self._batches.keep_lost(batch)
        self._batches.end(batch)
        return written

    def _sound_sum(self, batch: Batch, stores: ExitStack) -> tuple[TraceStore, Profile]:
        """The sum of a batch's files; what cannot be read is set aside, and of files whose sums are
        too large together, the last.
        """
        while True:
            files = batch.files()
            try:
                return stores.enter_context(_sum_of(files))
            except TraceError as error:
                alone = [(file, why) for file in files if (why := _fault_of(file))]
                for file, why in alone or [(files[-1], str(error))]:
                    path = self._batches.set_aside(batch, file)
                    reason = why.removeprefix(f"{file.path}: ").removeprefix(IN_MEMORY)
                    self._note(f"left out, and kept as {path}: {reason}")

    @property
    def _hides(self) -> bool:
        return self._shipping.is_anonymous

    def _is_sampled(self, window: HostWindow) -> bool:
        """Whether a host's traces of a day are sent: by a hash, so that all its windows are."""
        date = datetime.fromtimestamp(window.start_unix_ns / 1e9, UTC).date()
        place = int(identifier(f"{window.host} {date}"), 16) / 2**64
        return bool(window.tables) and place < self._shipping.traces_share


@contextmanager
def _sum_of(files: Sequence[Taken]) -> Iterator[tuple[TraceStore, Profile]]:
    """The trace in memory of a batch's files, and its profile. Raises TraceError."""
    store = TraceStore(":memory:")
    try:
        conversion = Conversion(store)
        for file in sorted(files, key=_order):
            with opened_region(file.path) as region:
                region.goes_on = region.goes_on and file.goes_on
                conversion.add(region)
        yield store, profile_of(store.connection)
    finally:
        store.abandon()


def _fault_of(file: Taken) -> str:
    """Why a file cannot be read; "": it can."""
    try:
        with _sum_of([file]):
            return ""
    except TraceError as error:
        return str(error)


def directory_of(place: str) -> str:
    """The directory of a place: itself, or that of a trace."""
    return place if os.path.isdir(place) else os.path.dirname(place) or "."


def _group(region: Region) -> Group:
    facts = facts_of(region)
    length_ns, start_ns = int(region["window_ns"]), int(region["part_start_unix_ns"])
    service = facts.get("service") or program_named_in(tuple(map(str, facts["arguments"])))
    host = identity_of(region)[2]
    names = (service, facts.get("version"), facts.get("environment"))
    return (*(str(name or "") for name in (host, *names)), f"{start_ns - start_ns % length_ns:020}")


def _order(file: Taken) -> tuple[int, str]:
    """Parts of a process in the order in which it wrote them."""
    try:
        with opened_region(file.path) as region:
            return int(region["part_start_unix_ns"]), file.path
    except TraceError:
        return 0, file.path


def _trace(store: TraceStore) -> bytes:
    """A trace's file, collapsed, without texts that may have values."""
    store.connection.execute("UPDATE exemplar SET sql = NULL, parameters = NULL")
    source = CheckedTrace(store.connection, ":memory:")
    with tempfile.TemporaryDirectory(prefix="queryprof-ship-trace-") as folder:
        path = os.path.join(folder, "trace")
        merge_traces(path, [":memory:"], opened=lambda _: nullcontext(source), collapses=True)
        with open(path, "rb") as file:
            return file.read()
