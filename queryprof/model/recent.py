"""The newest calls of a process."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model.places import CallPath, Thread


@dataclass(frozen=True, slots=True)
class RecentCall:
    """One of the newest driver calls of a process, such as an execute, commit or connect, but not a
    fetch.

    Attributes:
        duration_ns: time in the driver, including the fetches so far; None if the call is in
            progress.
        has_failed: whether the call raised an exception.
    """

    statement: str
    path: CallPath
    span: str
    thread: Thread
    operation: str
    start_unix_ns: int
    duration_ns: int | None
    has_failed: bool
