"""Keeps what was recorded: regions and their parts become a trace."""

from __future__ import annotations

import os

from queryprof.core import _core
from queryprof.trace.convert import Conversion
from queryprof.trace.place import retry
from queryprof.trace.region import Region, opened_region
from queryprof.trace.store import TraceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def write_trace(path: str, files: Iterable[str], own: bool, since_unix_ns: int) -> str:
    """Writes parts and regions to a trace, and returns its path: `path`, or one beside it where another
    program has made a file since the time given. It is there as a whole, or not at all.

    Args:
        files: of regions and parts.
        own: whether this process's own region belongs to it, too.

    Raises:
        TraceError, OSError, sqlite3.Error: it cannot be written.
    """
    beside = f"{path}.{os.getpid()}.new"
    store = TraceStore(beside)
    try:
        add_all(store, files, own)
        store.close()
        try:
            os.link(beside, path)
        except FileExistsError:
            path = retry(path, since_unix_ns)
            os.link(beside, path)
    finally:
        os.unlink(beside)
    return path


def add_all(store: TraceStore, files: Iterable[str], own: bool = False) -> None:
    """Adds parts and regions, then this process's own region if `own`, to a trace. What is told so is
    whole: the process says so itself.
    """
    conversion = Conversion(store)
    for path in files:
        with opened_region(path) as region:
            conversion.add(region, is_clean=True)
    if own:
        conversion.add(Region(_core.region()), is_clean=True)
