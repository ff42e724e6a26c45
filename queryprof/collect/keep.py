"""Keeps what was recorded: regions and their parts become a trace."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from queryprof.collect.convert import Conversion
from queryprof.collect.output_path import JOURNAL, retry
from queryprof.core import _core
from queryprof.errors import TraceError
from queryprof.region.region import Region, opened_region
from queryprof.region.region_files import nearby, remove, token
from queryprof.trace.store import TraceStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def write_trace(
    path: str,
    files: Iterable[str],
    own: bool,
    since_unix_ns: int,
    pid: int | None = None,
    until_unix_ns: int = 0,
) -> str:
    """Writes parts and regions to a trace, and returns its path: `path`, or one beside it if
    another program has made a file since the time given. The trace is written whole, or not at all.

    Args:
        files: of regions and parts.
        own: whether this process's own region belongs to it, too.
        pid: of the process that has recorded, if that is another one.
        until_unix_ns: they are the part of the recording from that time to this one; 0: they are
            all of it.

    Raises:
        TraceError, OSError, sqlite3.Error: it cannot be written.
    """
    beside = f"{nearby(path)}.{os.getpid()}-{token()}.new"
    try:
        with no_signal_of_limits():
            store = TraceStore(beside)
            try:
                block_unix_ns = (since_unix_ns, until_unix_ns) if until_unix_ns else None
                add_all(store, files, own, pid is None or None, block_unix_ns)
            finally:
                store.close()
        while True:
            try:
                _name(beside, path)
                break
            except FileExistsError:  # others may be as fast again
                path = retry(path, since_unix_ns, pid)
    finally:
        remove([beside, beside + JOURNAL])
    return path


def _name(made: str, path: str) -> None:
    """Gives a file its name. Raises FileExistsError if that is taken."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without such links: FAT, and some of a network
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.replace(made, path)


@contextmanager
def no_signal_of_limits() -> Iterator[None]:
    """While the block runs, a write beyond the limit of a file's size (RLIMIT_FSIZE) sends no
    signal, which would end the program.

    Raises:
        TraceError: there was such a write.
    """
    if not hasattr(signal, "SIGXFSZ"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGXFSZ})
    try:
        yield
    except (OSError, TraceError) as error:
        if signal.SIGXFSZ in signal.sigpending():
            raise TraceError("the limit of a file's size (ulimit -f) is too low for it") from error
        raise
    finally:
        if signal.SIGXFSZ not in before:
            while signal.SIGXFSZ in signal.sigpending():
                signal.sigwait({signal.SIGXFSZ})
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGXFSZ})


def add_all(
    store: TraceStore,
    files: Iterable[str],
    own: bool = False,
    is_clean: bool | None = True,
    block_unix_ns: tuple[int, int] | None = None,
) -> None:
    """Adds parts and regions, then this process's own region if `own`, to a trace.

    Args:
        is_clean: whether the process has ended its recording itself; None: as in the region.
        block_unix_ns: as in Conversion.
    """
    conversion = Conversion(store, block_unix_ns)
    paths = list(files)
    for place, path in enumerate(paths, 1):
        with opened_region(path) as region:
            region.goes_on = own or place < len(paths)
            conversion.add(region, is_clean)
    if own:
        conversion.add(Region(_core.region()), is_clean)
