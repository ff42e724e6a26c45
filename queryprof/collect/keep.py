"""Write recordings, which are regions and their parts, to a trace."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from queryprof.collect.convert import RegionConversion
from queryprof.collect.output_path import JOURNAL, unused_path
from queryprof.collect.recent_calls import CALLS_IN_FILE, NO_CALLS
from queryprof.errors import TraceError
from queryprof.region.region import opened_region
from queryprof.region.region_copy import copied_region
from queryprof.region.region_files import remove_files, temporary_stem, unique_token
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
    """Write parts and regions to a trace, completely or not at all, and return its path.

    The path is `path`, or one next to it if another program has created a file since
    `since_unix_ns`.

    Args:
        files: regions and parts.
        own: whether to add this process's own region.
        pid: the recorded process, if it is not this one.
        until_unix_ns: end of the part of the recording that starts at `since_unix_ns`; 0 if the
            files are the complete recording.

    Raises:
        TraceError, OSError, sqlite3.Error: the trace cannot be written.
    """
    temporary = f"{temporary_stem(path)}.{os.getpid()}-{unique_token()}.new"
    try:
        with without_size_limit_signal():
            store = TraceStore(temporary)
            try:
                block_unix_ns = (since_unix_ns, until_unix_ns) if until_unix_ns else None
                add_recorded_files(store, files, own, pid is None or None, block_unix_ns)
            finally:
                store.close()
        while True:
            try:
                _rename_without_replacing(temporary, path)
                break
            except FileExistsError:  # another process may have created a file at this path again
                path = unused_path(path, since_unix_ns, pid)
    finally:
        remove_files([temporary, temporary + JOURNAL])
    return path


def _rename_without_replacing(from_path: str, path: str) -> None:
    """Give a file its final name. Raises FileExistsError if the name is taken."""
    try:
        os.link(from_path, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: FAT, and some network file systems
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.replace(from_path, path)


@contextmanager
def without_size_limit_signal() -> Iterator[None]:
    """Block SIGXFSZ during the block, so that a too large file does not end the program.

    Raises:
        TraceError: a write exceeded the file size limit (RLIMIT_FSIZE).
    """
    if not hasattr(signal, "SIGXFSZ"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGXFSZ})
    try:
        yield
    except (OSError, TraceError) as error:
        if signal.SIGXFSZ in signal.sigpending():
            raise TraceError("the file size limit (ulimit -f) is too low for it") from error
        raise
    finally:
        if signal.SIGXFSZ not in before:
            while signal.SIGXFSZ in signal.sigpending():
                signal.sigwait({signal.SIGXFSZ})
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGXFSZ})


def add_recorded_files(
    store: TraceStore,
    files: Iterable[str],
    own: bool = False,
    is_clean: bool | None = True,
    block_unix_ns: tuple[int, int] | None = None,
) -> None:
    """Add parts and regions to a trace, followed by this process's own region if `own`.

    Args:
        is_clean: whether the process ended its recording itself; None to use the region's state.
        block_unix_ns: see RegionConversion.
    """
    conversion = RegionConversion(
        store, block_unix_ns, NO_CALLS if block_unix_ns else CALLS_IN_FILE
    )
    paths = list(files)
    for place, path in enumerate(paths, 1):
        with opened_region(path) as region:
            region.continues = own or place < len(paths)
            conversion.add(region, is_clean)
    if own:
        conversion.add(copied_region(), is_clean)
