"""Watch running processes: read what was added to the sums in their regions since the last reading.

Only changed rows are read in full, so a reading takes milliseconds and does not affect the process.
Calls that the process has not added to its sums yet are in a later reading. While a cursor is being
read, these are the calls of at most one second.

If a region was emptied between two readings, the rest of the activity is in a file (a part) next to
the trace. If the part was removed as well, the rest is missing.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import replace
from time import monotonic_ns

from queryprof.core import _core
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import TraceError
from queryprof.model.live import Activity, HeldLock, LockTime, LoopActivity, ProcessActivity
from queryprof.model.places import CallPath, Frame
from queryprof.region.identity import region_facts, region_identity, region_trace_path
from queryprof.region.names import CODE_KINDS, LAG_SOURCES, LOCK_KINDS
from queryprof.region.part_names import part_number, parts_of_trace
from queryprof.region.region import RECORDS, Region
from queryprof.region.region_files import is_living, readable_regions
from queryprof.trace.attached import file_identity

ROWS_AT_ONCE = 64
LAG_COLUMN_SUFFIXES = ("max_ns", "spread", "bucket", "count")
"""Suffixes of the region's columns for a loop's delays (the longest, and the histogram). The prefix
is the source of the delay.
"""
KEY = ("statement", "path", "operation")
FIGURES = ("count", "total_ns", "self_ns", "counted", "vm_steps", "full_scan_steps")
MAX_DEPTH = 1000
"""Maximum number of frames that are followed in a call path."""

DAMAGED = (TraceError, LookupError, TypeError, ValueError, ArithmeticError, OSError, struct.error)
"""Errors that reading an untrusted file may raise."""

Chosen = Callable[[Region], bool]


def pid_filter(pid: int) -> Chosen:
    """Return a filter for a process id."""
    return lambda region: int(region["pid"]) == pid


def trace_path_filter(path: str) -> Chosen:
    """Return a filter for processes that record for a trace, or for any trace in a directory."""
    wanted = os.path.abspath(path)
    inside = os.path.join(os.path.realpath(wanted), "")

    def chosen(region: Region) -> bool:
        trace = os.path.abspath(region_trace_path(region))
        folder = os.path.dirname(trace)
        is_part = folder.startswith(f"{wanted}.") and folder.endswith(".parts")
        return trace == wanted or is_part or os.path.realpath(trace).startswith(inside)

    return chosen


class ActivityReader:
    """Reads the running processes of this user repeatedly.

    Args:
        chosen: a filter; None for all.
        pids: read only processes with these ids. Files of other processes are not opened.

    Attributes:
        left_out: messages about damaged files, which are no longer read.
    """

    def __init__(self, chosen: Chosen | None = None, pids: Container[int] | None = None) -> None:
        self._chosen = chosen
        self._pids = pids
        self._known: dict[str, _RecordedProcess] = {}
        self._ignored: set[str] = set()
        self.left_out: list[str] = []
        self._is_first = True

    def read_activity(self) -> list[ProcessActivity]:
        """Return each process's activity since the last reading.

        For a process that has ended meanwhile, this is the rest of its activity.
        """
        for path in readable_regions(pids=self._pids):
            if path not in self._known and path not in self._ignored:
                self._open(path)
        self._is_first = False
        found = []
        for path, process in list(self._known.items()):
            try:
                found.append(process.read_activity())
            except DAMAGED as error:
                process.has_ended = True
                self.left_out.append(f"{path}: damaged: {error}")
            if process.has_ended:
                process.close()
                del self._known[path]
                self._ignored.add(path)
        return found

    def plans(self, statement: str) -> list[str]:
        """Return the known plans of a statement, as texts of several lines."""
        plans = [plan for process in self._known.values() for plan in process.plans(statement)]
        return list(dict.fromkeys(plans))

    def close(self) -> None:
        for process in self._known.values():
            process.close()
        self._known.clear()

    def _open(self, path: str) -> None:
        try:
            region = Region(path=path)
        except TraceError:
            return  # the region is being created, or was just removed
        try:
            is_own = region["pid"] == os.getpid()
            is_over = is_own or is_living(region) is False
            if region.state == RECORDS and not is_over:
                if self._chosen is None or self._chosen(region):
                    # A process that began since the last reading may have ended parts by now.
                    self._known[path] = _RecordedProcess(region, has_parts=not self._is_first)
                    return
                is_over = True
            if is_over:
                self._ignored.add(path)  # otherwise each reading would open the file again
        except DAMAGED:
            pass  # the process has not written its facts yet
        region.close()


def locks_held_here() -> list[HeldLock]:
    """Return the write locks that this process holds while it records."""
    held = _RecordedProcess(Region(_core.region())).held_locks()
    # the core writes the pid only if other processes may read the region
    return [replace(one, pid=os.getpid()) for one in held]


class _RecordedProcess:
    """One process: its region, and the content at the last reading."""

    def __init__(self, region: Region, has_parts: bool = False) -> None:
        self._region = region
        facts = region_facts(region)
        self._command = tuple(map(str, facts.get("arguments") or ()))
        self._directory = str(facts.get("directory") or "")
        self._operations: tuple[str, ...] = tuple(
            facts.get("operations") or _core.operation_names()
        )
        started_ns = unix_ns() - int(facts.get("start_unix_ns") or unix_ns())
        self._looked_ns = monotonic_ns() - max(started_ns, 1)
        self._before = b""
        self._part = 0 if has_parts else int(region["part_ended"])
        self._service = str(facts.get("service") or "")
        self._version = str(facts.get("version") or "")
        self._loops: dict[int, tuple[dict[int, int], int]] = {}
        self._paths: dict[int, CallPath] = {0: ()}
        self.has_ended = False

    def close(self) -> None:
        self._region.close()

    def read_activity(self) -> ProcessActivity:
        region, now_ns = self._region, monotonic_ns()
        self.has_ended = is_living(region) is False
        region.read_head()
        self.has_ended |= region.state != RECORDS
        activities, loops = self._activity_in_parts()
        packed = region.packed_rows("aggregates")
        found = ProcessActivity(
            int(region["pid"]),
            self._command,
            self._directory,
            self.has_ended,
            max(now_ns - self._looked_ns, 1),
            (*activities, *self._current_activities(packed)),
            (*loops, *self._loop_activities()),
            tuple(self.held_locks()),
            self._service,
            self._version,
            tuple(self._lock_times()),
        )
        self._before, self._looked_ns = packed, now_ns
        return found

    def _activity_in_parts(self) -> tuple[list[Activity], list[LoopActivity]]:
        """Return what was recorded since the last reading in parts that have ended in the
        meantime.
        """
        begun, region = self._part, self._region
        activities: list[Activity] = []
        loops: list[LoopActivity] = []
        if region["part_ended"] == begun:
            return activities, loops
        self._part = region["part_ended"]
        for path in parts_of_trace(region_trace_path(region), int(region["pid"])):
            if begun < part_number(path) <= self._part:
                with suppress(TraceError):
                    part = _RecordedProcess(Region(path=path))
                    if region_identity(part._region) == region_identity(region):
                        part._before, part._loops = self._before, self._loops
                        activities += part._current_activities(
                            part._region.packed_rows("aggregates")
                        )
                        loops += part._loop_activities()
                        self._before, self._loops = b"", {}
                    part.close()
        self._before, self._loops, self._paths = b"", {}, {0: ()}
        return activities, loops

    def _current_activities(self, now: bytes) -> Iterator[Activity]:
        table, before = self._region.tables["aggregates"], self._before
        for rows, old in _changed_rows(now, before, table.row_bytes):
            known = table.unpack_rows(old, FIGURES)
            for (statement, path, operation, *figures), was in zip(
                table.unpack_rows(rows, (*KEY, *FIGURES)), known, strict=True
            ):
                calls, total_ns, self_ns, counted, steps, scanned = map(int.__sub__, figures, was)
                if any((calls, total_ns, self_ns, counted, steps, scanned)):
                    yield Activity(
                        self._statement(statement),
                        self._path(path),
                        self._operation(operation),
                        calls,
                        self_ns,
                        total_ns,
                        counted,
                        steps,
                        scanned,
                    )

    def _loop_activities(self) -> Iterator[LoopActivity]:
        region = self._region
        parts = [f"{source}_{part}" for source in LAG_SOURCES for part in LAG_COLUMN_SUFFIXES]
        stalls: dict[int, int] = {}
        for loop, count in region.rows("stalls", ("loop", "count")):
            stalls[loop] = stalls.get(loop, 0) + count
        rows = list(region.rows("loops", ("kind", "thread", *parts)))
        for number, (kind, thread, *lags) in enumerate(rows):
            all_lags: dict[int, int] = {}
            longest_ns = 0
            figures = iter(lags)
            for max_ns, *histogram in zip(*[figures] * len(LAG_COLUMN_SUFFIXES), strict=True):
                longest_ns = max(longest_ns, max_ns)
                for bucket, count in region.histogram(*histogram):
                    all_lags[bucket] = all_lags.get(bucket, 0) + count
            was, stalled = self._loops.get(number, ({}, 0))
            self._loops[number] = (all_lags, stalls.get(number, 0))
            added = {b: n - was.get(b, 0) for b, n in all_lags.items() if n > was.get(b, 0)}
            yield LoopActivity(
                region.text(kind),
                self._thread(thread),
                added,
                longest_ns,
                stalls.get(number, 0) - stalled,
            )

    def held_locks(self) -> Iterator[HeldLock]:
        """Yield the write locks that the process holds now."""
        for recording, *key, identity, start_ticks in self._region.rows(
            "held_locks", ("recording", "statement", "path", "thread", "identity", "start_ticks")
        ):
            if recording:
                statement, path, thread = key
                yield HeldLock(
                    int(self._region["pid"]),
                    self._thread(thread),
                    self._statement(statement),
                    self._path(path),
                    identity,
                    self._region.unix_ns(start_ticks),
                )

    def _lock_times(self) -> Iterator[LockTime]:
        identities: dict[str, int] = {}
        for kind, database, start_unix_ns, duration_ns in self._region.rows(
            "lock_events", ("kind", "database", "start_unix_ns", "duration_ns")
        ):
            if LOCK_KINDS[kind] != "read":
                name, is_wait = self._region.text(database), LOCK_KINDS[kind] == "wait"
                if name not in identities:
                    identities[name] = _identity_of_file(name)
                yield LockTime(name, identities[name], is_wait, start_unix_ns, duration_ns)

    def plans(self, statement: str) -> list[str]:
        region = self._region
        return [
            region.text(tree)
            for number, tree in region.rows("plans", ("statement", "tree"))
            if tree and self._statement(number) == statement
        ]

    # -- names -------------------------------------------------------------------------------

    def _statement(self, number: int) -> str:
        if number >= self._region.counts["statements"]:
            self._region.read_head()
        (text,) = self._region.row("statements", number, ("text",))
        return self._region.text(text) or "(unknown)"

    def _operation(self, number: int) -> str:
        return self._operations[number] if number < len(self._operations) else "execute"

    def _thread(self, number: int) -> str:
        (name,) = self._region.row("threads", number, ("name",))
        return self._region.text(name)

    def _path(self, number: int) -> CallPath:
        known = self._paths.get(number)
        if known is None:
            frames: list[Frame] = []
            place = number
            while place and len(frames) < MAX_DEPTH:
                outer, line = self._region.row("stacks", place, ("outer", "line"))
                frames.append(self._frame(line))
                place = outer if outer < place else 0
            known = self._paths[number] = tuple(frames)
        return known

    def _frame(self, number: int) -> Frame:
        function, file, line, kind = self._region.row(
            "lines", number, ("function", "file", "line", "kind")
        )
        text = self._region.text
        return Frame(text(function), text(file), line, CODE_KINDS[min(kind, len(CODE_KINDS) - 1)])


def _identity_of_file(path: str) -> int:
    try:
        return file_identity(os.stat(path))
    except (OSError, ValueError):
        return 0


def _changed_rows(now: bytes, before: bytes, row_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the changed rows with their previous content, which is zeros for new rows.

    Compares many rows at once.
    """
    many = row_bytes * ROWS_AT_ONCE
    for at in range(0, len(now), many):
        rows, old = now[at : at + many], before[at : at + many]
        if rows == old:
            continue
        old += bytes(len(rows) - len(old))
        places = [
            place
            for place in range(0, len(rows), row_bytes)
            if rows[place : place + row_bytes] != old[place : place + row_bytes]
        ]
        yield (
            b"".join(rows[place : place + row_bytes] for place in places),
            b"".join(old[place : place + row_bytes] for place in places),
        )
