"""Send each ended window of a recording to a store or OTLP endpoint once, and delete the window.

All files with the same host, service, version, environment and window form one batch. The processes
and windows of a batch never change, and determine its file names in the store. So a batch that is
sent again, after a failure or a kill, replaces its earlier files.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple, Self

from queryprof.collect.closed_windows import closed_windows, has_recording_process
from queryprof.collect.convert import RegionConversion
from queryprof.collect.reader import IN_MEMORY, profile_from_connection
from queryprof.collect.recent_calls import NO_CALLS
from queryprof.errors import QueryprofError, TraceError
from queryprof.fleet.batches import Batches
from queryprof.fleet.flat import host_windows
from queryprof.fleet.parquet_files import write
from queryprof.recorder.autoload import program_named_in
from queryprof.region.identity import region_facts, region_identity
from queryprof.region.region import opened_region
from queryprof.trace.store import TraceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queryprof.collect.closed_windows import Window
    from queryprof.fleet.batches import Batch, Taken
    from queryprof.fleet.location import Location
    from queryprof.model import Profile
    from queryprof.region.region import Region

STORED = "store"
"""The name of the message to the store, which contains all rows of a batch."""

Group = tuple[str, ...]
"""The key of a batch: host, service (or program), version, environment, and start of the window."""


@dataclass(frozen=True, slots=True)
class Shipping:
    """Settings of a Shipper.

    Attributes:
        kept_bytes: maximum size of the batches that wait while the store is unavailable.
        is_anonymous: replace the program's texts by their hashes.
    """

    kept_bytes: int
    is_anonymous: bool = False


class UnavailableError(QueryprofError):
    """The store has accepted a batch, but the OTLP endpoint has not."""

    def __init__(self, reason: QueryprofError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class SentWindows(NamedTuple):
    """The result of one run.

    Attributes:
        windows: number of sent windows.
        files: number of files that were written to the store.
    """

    windows: int
    files: int


class Shipper:
    """Sends the recordings of a directory. Only one Shipper per directory can be open.

    Args:
        places: the directory in which processes record in windows, or paths of traces in it.
        location: the store; None to send only to `telemetry`.
        note: called with one line for each message.
        telemetry: sends a batch to an OTLP endpoint, given the batch's profile and the batch, which
            records what was delivered. Returns whether the endpoint accepted the batch; a rejected
            batch is not sent again.

    Attributes:
        directory: path of the directory.

    Raises:
        QueryprofError: another process sends from this directory, or the directory is not writable.
    """

    def __init__(
        self,
        places: Sequence[str],
        location: Location | None,
        shipping: Shipping,
        note: Callable[[str], None],
        telemetry: Callable[[Profile, Batch], bool] | None = None,
    ) -> None:
        self._places = places
        self.directory = directory_of(places[0])
        self._location = location
        self._shipping = shipping
        self._note = note
        self._telemetry = telemetry
        self._batches = Batches(self.directory)
        self._context = ExitStack()
        self._lost = 0  # number of lost windows so far

    def __enter__(self) -> Self:
        self._context.enter_context(self._batches.alone())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._context.close()

    def run(self) -> SentWindows:
        """Move the ended windows into batches, and send all waiting batches.

        Raises:
            QueryprofError, OSError: the store or OTLP endpoint fails. Unsent batches wait for the
                next run.
        """
        self._batches.open_again()
        for windows in self._groups():
            self._batches.take(windows)
        self._drop_excess_batches()
        sent = written = 0
        away: QueryprofError | None = None
        for name in self._batches.waiting():
            with self._batches.opened(name) as batch:
                files = batch.files()
                try:
                    count, is_taken = self._send(batch, reaches_telemetry=not away)
                except UnavailableError as error:  # the store works: go on
                    away = away or error.reason
                    continue
                written += count
                sent += len(files) * is_taken
        if away:
            raise away
        return SentWindows(sent, written)

    def _drop_excess_batches(self) -> None:
        """Drop the oldest batches if all batches exceed the size limit."""
        lost = self._batches.drop_beyond(self._shipping.kept_bytes)
        self._lost += lost
        if lost:
            are = "window" if self._lost == 1 else "windows"
            why = "the unsent windows exceeded --keep"
            self._note(f"{self.directory}: {self._lost:,} {are} lost: {why}")

    def has_living(self) -> bool:
        """Return whether a running process records in the directory."""
        return any(map(has_recording_process, self._places))

    def waits(self) -> int:
        """Return how many windows wait to be sent."""
        return self._batches.count()

    def _groups(self) -> list[list[Window]]:
        """Return the ended windows, grouped into batches."""
        groups: dict[Group, list[Window]] = {}
        for place in self._places:
            windows, left_out = closed_windows(place)
            for reason in left_out:
                self._note(f"skipped: {reason}")
            for window in windows:
                try:
                    with opened_region(window.path) as region:
                        groups.setdefault(_group(region), []).append(window)
                except TraceError as error:
                    if os.path.lexists(window.path):
                        self._note(f"skipped: {error}")
        return [groups[key] for key in sorted(groups)]

    def _send(self, batch: Batch, reaches_telemetry: bool) -> tuple[int, bool]:
        """Send a batch. Return the number of written files, and whether the store or OTLP endpoint
        accepted the batch.

        Raises:
            UnavailableError: the OTLP endpoint does not accept the batch, or is known to be down.
        """
        lost, written, is_taken = batch.lost, 0, self._location is not None
        profile = self._readable_sum(batch)
        if self._location and not batch.has(STORED):
            for window in host_windows(profile, self._shipping.is_anonymous):
                written += len(write(self._location, window, lost))
                lost = 0 if window.tables.get("aggregate") else lost
        if self._telemetry:
            if self._location and not batch.has(STORED):
                batch.add(STORED)
            try:
                if not reaches_telemetry:
                    raise QueryprofError("the OTLP endpoint is down")
                is_taken |= self._telemetry(profile, batch)
            except QueryprofError as error:
                raise UnavailableError(error) from error
        if lost and not batch.has(STORED):
            self._batches.keep_lost(batch)
        self._batches.end(batch)
        return written, is_taken

    def _readable_sum(self, batch: Batch) -> Profile:
        """Add up a batch's files.

        Unreadable files are set aside. If the sum of readable files fails, the last file is set
        aside.
        """
        while True:
            files = batch.files()
            try:
                return _sum_of(files)
            except TraceError as error:
                alone = [(file, why) for file in files if (why := _fault_of(file))]
                for file, why in alone or [(files[-1], str(error))]:
                    path = self._batches.set_aside(batch, file)
                    reason = why.removeprefix(f"{file.path}: ").removeprefix(IN_MEMORY)
                    self._note(f"skipped, and kept as {path}: {reason}")


def _sum_of(files: Sequence[Taken]) -> Profile:
    """Convert a batch's files to a trace in memory, and return its profile. Raises TraceError."""
    store = TraceStore(":memory:")
    try:
        conversion = RegionConversion(store, calls=NO_CALLS)
        for file in sorted(files, key=_order):
            with opened_region(file.path) as region:
                region.continues = region.continues and file.continues
                conversion.add(region)
        return profile_from_connection(store.connection)
    finally:
        store.abandon()


def _fault_of(file: Taken) -> str:
    """Return why a file cannot be read, or ""."""
    try:
        _sum_of([file])
    except TraceError as error:
        return str(error)
    return ""


def directory_of(place: str) -> str:
    """Return a place's directory: the place itself, or a trace's directory."""
    return place if os.path.isdir(place) else os.path.dirname(place) or "."


def _group(region: Region) -> Group:
    facts = region_facts(region)
    length_ns, start_ns = int(region["window_ns"]), int(region["part_start_unix_ns"])
    service = facts.get("service") or program_named_in(tuple(map(str, facts["arguments"])))
    host = region_identity(region)[2]
    names = (service, facts.get("version"), facts.get("environment"))
    return (*(str(name or "") for name in (host, *names)), f"{start_ns - start_ns % length_ns:020}")


def _order(file: Taken) -> tuple[int, str]:
    """Return a sort key that puts a process's parts in the order in which they were written."""
    try:
        with opened_region(file.path) as region:
            return int(region["part_start_unix_ns"]), file.path
    except TraceError:
        return 0, file.path
