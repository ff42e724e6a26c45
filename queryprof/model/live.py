"""Activity of running processes between two consecutive reads of their recordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from queryprof.model.places import CallPath


@dataclass(frozen=True, slots=True)
class Activity:
    """Sums of the calls of one operation, for one statement from one call path.

    Attributes:
        self_ns, total_ns: as in Aggregate.
        calls: driver calls.
        vm_steps, full_scan_steps: sums over the executions with known counters; `counted` is their
            number.
    """

    statement: str
    path: CallPath
    operation: str
    calls: int
    self_ns: int
    total_ns: int
    counted: int
    vm_steps: int
    full_scan_steps: int = 0


@dataclass(frozen=True, slots=True)
class LoopActivity:
    """Activity of an event loop.

    Attributes:
        lags: histogram of the lag of timers and heartbeats, with buckets as in Aggregate.
        stalls: how often the loop was blocked.
    """

    kind: str
    thread: str
    lags: Mapping[int, int] = field(hash=False)
    longest_ns: int
    stalls: int


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A write lock that a process holds now.

    Attributes:
        statement, path: the statement and call path that took the lock.
        identity: the identity of the database's file (see queryprof.trace.attached).
    """

    pid: int
    thread: str
    statement: str
    path: CallPath
    identity: int
    start_unix_ns: int


@dataclass(frozen=True, slots=True)
class LockTime:
    """A time of at least 1 ms in which a process held a database's write lock, or waited for a
    lock on the database.

    Attributes:
        identity: the identity of the database's file, as in HeldLock; 0 if it cannot be read.
    """

    database: str
    identity: int
    is_wait: bool
    start_unix_ns: int
    duration_ns: int


@dataclass(frozen=True, slots=True)
class ProcessActivity:
    """Activity of one process between two consecutive reads.

    Attributes:
        lock_times: those that the recording keeps, also from before the previous read.
        interval_ns: time since the previous read, or since the process's start.
        service, version: names from the deployment; "" if not set.
    """

    pid: int
    command: tuple[str, ...]
    directory: str
    has_ended: bool
    interval_ns: int
    activities: tuple[Activity, ...]
    loops: tuple[LoopActivity, ...]
    held: tuple[HeldLock, ...] = ()
    service: str = ""
    version: str = ""
    lock_times: tuple[LockTime, ...] = ()
