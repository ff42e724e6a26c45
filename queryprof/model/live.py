"""Activity of running processes between two readings."""

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
        vm_steps, full_scan_steps: sums over the `counted` executions for which they are known.
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
        lags: lateness of timers and heartbeats, as a histogram like Aggregate's.
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
        statement, path: of the call that took the lock.
        identity: identity of the database's file: see queryprof.trace.attached.
    """

    pid: int
    thread: str
    statement: str
    path: CallPath
    identity: int
    start_unix_ns: int


@dataclass(frozen=True, slots=True)
class ProcessActivity:
    """Activity of one process between two readings.

    Attributes:
        interval_ns: time since the previous reading, or since the start.
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
