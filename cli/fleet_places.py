"""Read the inputs of `queryprof fleet`: directories, stores and traces."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from queryprof.errors import QueryprofError

Found = TypeVar("Found")

if TYPE_CHECKING:
    from collections.abc import Callable

    from queryprof.fleet.copies import Copies, Wanted
    from queryprof.fleet.duck import Engine, Selection
    from queryprof.fleet.location import Location
    from queryprof.fleet.store import Store


class ReadingNotes:
    """Messages about the inputs.

    Attributes:
        left_out: one line for each input that cannot be read.
    """

    def __init__(self) -> None:
        self.left_out: list[str] = []
        self._others: list[str] = []

    def add_shared(self, traces: set[str]) -> None:
        """Add messages about traces that combine several hosts."""
        from queryprof.fleet.parquet_files import SHARED

        self._others += [f"{trace}: {SHARED}" for trace in sorted(traces)]

    def add_store(self, store: Store) -> None:
        """Add the messages about a store's files."""
        from queryprof.analysis.units import counted

        self.left_out += store.left_out
        if store.repeated:
            windows = counted(store.repeated, "window")
            are, they = ("is", "it is") if store.repeated == 1 else ("are", "they are")
            self._others.append(
                f"{windows} {are} counted more than once: {they} in several files, or a host's"
                " clock was set back"
            )
        if store.lost:
            were, are = ("was", "is") if store.lost == 1 else ("were", "are")
            self._others.append(
                f"{counted(store.lost, 'window')} {were} lost before being sent and {are} missing"
                " from these figures"
            )

    def print(self) -> None:
        """Print the messages on stderr."""
        from queryprof.cli.output import print_message

        for note in [*(f"skipped: {reason}" for reason in self.left_out), *self._others]:
            print_message(note)


@contextmanager
def opened_places(
    places: Sequence[str], selection: Selection
) -> Iterator[tuple[Engine, ReadingNotes]]:
    """Open the files of all directories, stores and traces in `places`. Yields the query engine and
    the messages about the files.
    """
    from queryprof.cli.fleet_extra import fleet_extra_imports
    from queryprof.collect.given_traces import traces_for_argument

    with fleet_extra_imports():
        from queryprof.fleet.duck import Engine
        from queryprof.fleet.location import is_url
        from queryprof.fleet.store import directory_place, read_store
    notes = ReadingNotes()
    stores = [place for place in places if is_url(place)]
    directories = [place for place in places if place not in stores and os.path.isdir(place)]
    others = [place for place in places if place not in (*stores, *directories)]
    traces = [trace for place in others for trace in traces_for_argument(place)]
    with tempfile.TemporaryDirectory(prefix="queryprof-fleet-") as folder:
        _export_traces(traces, folder, notes)
        found = [directory_place(one) for one in [*directories, *([folder] if traces else [])]]
        wanted = _wanted_files(selection)
        found += [_read_copies(url, lambda one: one.place(wanted)) for url in stores]
        store = read_store(found)
        notes.add_store(store)
        engine = Engine(store)
        try:
            yield engine, notes
            notes.left_out += engine.store.left_out[len(store.left_out) :]
        finally:
            engine.close()


def _export_traces(traces: Sequence[str], folder: str, notes: ReadingNotes) -> None:
    """Write traces as a fleet's files."""
    from queryprof.collect.reader import read_windows
    from queryprof.fleet import parquet_files
    from queryprof.fleet.flat import host_windows
    from queryprof.fleet.location import Directory

    shared: set[str] = set()
    for trace in traces:
        for profile in read_windows(trace, notes.left_out.append):
            for window in host_windows(profile):
                parquet_files.write(Directory(folder), window)
                shared |= {trace} if window.is_shared else set()
    notes.add_shared(shared)


def _wanted_files(selection: Selection) -> Wanted:
    from queryprof.fleet.copies import Wanted

    return Wanted(selection.service, selection.since, selection.until)


def _read_copies(url: str, read: Callable[[Copies], Found]) -> Found:
    """Copy a store's files with a progress bar, and return the result of `read`."""
    from queryprof.cli.progress import progress
    from queryprof.fleet.copies import Copies, default_folder
    from queryprof.fleet.location import ObjectStore

    store = ObjectStore(url)
    with progress("copying", 0) as step:
        return read(Copies(store, default_folder(), step=step))


def existing_location(place: str) -> Location:
    """Return the location of an existing directory or of a store. Raises QueryprofError."""
    from queryprof.fleet.location import is_url, location_of

    if not is_url(place) and not os.path.isdir(place):
        raise QueryprofError(f"{place}: no such directory")
    return location_of(place)
