"""What living processes did between two looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from queryprof.model.places import CallPath


@dataclass(frozen=True, slots=True)
class Activity:
    """What the calls of one operation, for one statement from one call path, added.

    Attributes:
        self_ns, total_ns: as an Aggregate's; calls: of the driver.
        vm_steps, full_scan_steps: of the `counted` executions for which they are known.
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
    """What an event loop did: how late its timers and queryprof's beats were (a histogram as an
    Aggregate's), and how often it was blocked.
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
        statement, path: of the call that took it.
        identity: of the database's file: see queryprof.trace.attached.
    """

    pid: int
    thread: str
    statement: str
    path: CallPath
    identity: int
    start_unix_ns: int


@dataclass(frozen=True, slots=True)
class ProcessActivity:
    """What one process did between two looks; `interval_ns` since the one before, or its start.

    Attributes:
        service, version: what the deployment calls the program; "": not set.
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
