"""The current activity of each statement and call site: the work between two consecutive reads of
the recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from queryprof.analysis.histogram import add_histograms, percentile
from queryprof.model.live import Activity, HeldLock, ProcessActivity
from queryprof.model.places import CallPath, Frame
from queryprof.operations import FETCH_OPERATIONS

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class BusyStatement:
    """The activity of one statement on one line of the program.

    Attributes:
        callers: the most expensive call path to the line.
        busy: time in the database divided by wall time; 1 means that one thread was in the database
            all the time.
        executions_per_s: 0 if the program only fetched rows of earlier executions.
        mean_ns: the mean time of an execution, with its fetches; None if no execution began.
        vm_steps: SQLite's VM steps per execution; None if unknown.
    """

    statement: str
    frame: Frame | None
    callers: CallPath
    busy: float
    executions_per_s: float
    mean_ns: float | None
    vm_steps: float | None


@dataclass(frozen=True, slots=True)
class BusyLoop:
    """An event loop. `lag_p99_ns` is the 99th percentile of the timers' and heartbeats' lag, or
    None if there were none; `stalls` counts how often the loop was blocked.
    """

    pid: int
    kind: str
    thread: str
    lag_p99_ns: int | None
    stalls: int


@dataclass(frozen=True, slots=True)
class SeenProcess:
    pid: int
    command: tuple[str, ...]
    busy: float
    has_ended: bool


@dataclass(frozen=True, slots=True)
class LiveActivity:
    """The activity of all processes. `statements` are sorted by the sort key; `held` begins with
    the lock that was held longest.
    """

    processes: tuple[SeenProcess, ...]
    statements: tuple[BusyStatement, ...]
    loops: tuple[BusyLoop, ...]
    held: tuple[HeldLock, ...]


SORT_KEYS: Mapping[str, Callable[[BusyStatement], float]] = {
    "time": lambda one: one.busy,
    "executions": lambda one: one.executions_per_s,
    "mean": lambda one: one.mean_ns or 0.0,
    "vmsteps": lambda one: one.vm_steps or 0.0,
}


def combine_activity(processes: Iterable[ProcessActivity], sort: str = "time") -> LiveActivity:
    """Combine the activity of several processes. `sort` is a key of SORT_KEYS; the statement with
    the largest value comes first.
    """
    known = list(processes)
    groups: dict[tuple[str, Frame | None], list[tuple[Activity, int]]] = {}
    for process in known:
        for one in process.activities:
            key = (one.statement, one.path[0] if one.path else None)
            groups.setdefault(key, []).append((one, process.interval_ns))
    measure = SORT_KEYS[sort]
    statements = [_busy_statement(*key, members) for key, members in groups.items()]
    return LiveActivity(
        tuple(
            SeenProcess(
                one.pid,
                one.command,
                sum(a.self_ns for a in one.activities) / one.interval_ns,
                one.has_ended,
            )
            for one in known
        ),
        tuple(sorted(statements, key=lambda one: (-measure(one), one.statement))),
        tuple(
            BusyLoop(
                process.pid,
                loop.kind,
                loop.thread,
                percentile(add_histograms([loop.lags]), 0.99, loop.longest_ns),
                loop.stalls,
            )
            for process in known
            for loop in process.loops
        ),
        tuple(
            sorted(
                (one for process in known for one in process.held),
                key=lambda one: one.start_unix_ns,
            )
        ),
    )


def _busy_statement(
    statement: str, frame: Frame | None, members: list[tuple[Activity, int]]
) -> BusyStatement:
    began = [(one, ns) for one, ns in members if one.operation not in FETCH_OPERATIONS]
    executions = sum(one.calls for one, _ in began)
    counted = sum(one.counted for one, _ in members)
    most = max((one for one, _ in members), key=lambda one: one.self_ns)
    return BusyStatement(
        statement=statement,
        frame=frame,
        callers=most.path[1:],
        busy=sum(one.self_ns / interval_ns for one, interval_ns in members),
        executions_per_s=sum(one.calls * SECOND_NS / interval_ns for one, interval_ns in began),
        mean_ns=sum(one.total_ns for one, _ in members) / executions if executions else None,
        vm_steps=sum(one.vm_steps for one, _ in members) / counted if counted else None,
    )
