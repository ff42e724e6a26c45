"""Read the aggregates of a region, including calls that a killed process had not added to its sums.

A process stores each call's measurements, and adds several calls to the sums at once. If it is
killed, some stored calls are not in the sums. Two values show whether a call is in the sums
already: the stage of the call, which is stored after the values that it covers, and the count that
the row of sums had before the call was added (see queryprof/core/memory/execution_row.h).

Counts are therefore exact, whenever the process was killed. Times of calls that were just being
added may be missing or counted twice. The arithmetic is the same as in the core.
"""

from __future__ import annotations

from operator import attrgetter

from queryprof.core import _core
from queryprof.trace.tables import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from queryprof.region.region import Region

    Key = tuple[int, int, int, int, int]

BEGINNING, BEGUN, SETTLING, SETTLED = 1, 2, 3, 4
NONE_NS = (1 << 63) - 1
"""The initial value of a row's shortest time, while the row has no calls."""

KEY = ("statement", "path", "span", "thread", "operation")
SUMS = TABLE["aggregate"].sums
EXTREMES = ("min_ns", "max_ns", "execution_max_ns")
BEFORE = ("min_before_ns", "max_before_ns", "execution_max_before_ns")
HISTOGRAM = ("durations_spread", "durations_bucket", "durations_count")
COUNTERS = SUMS[SUMS.index("counted") :]
"""SQLite's own counters, which may be known for a call that has not ended."""

NO_CALLS = dict.fromkeys((*SUMS, *EXTREMES), 0) | {"min_ns": NONE_NS}

_values = attrgetter(*TABLE["aggregate"].value_names)
_counters = attrgetter(*COUNTERS)


class AggregateRow:
    """An aggregate of a region: its key, histogram, and figures (`SUMS`, `EXTREMES`)."""

    __slots__ = ("carried", "count_read", "histogram", "key", *SUMS, *EXTREMES)

    count: int
    errors: int
    rows: int
    total_ns: int
    self_ns: int
    execution_sum_sq_ns2: float
    min_ns: int
    max_ns: int
    execution_max_ns: int

    def __init__(
        self, key: Key, figures: Mapping[str, Any], histogram: list[tuple[int, int]]
    ) -> None:
        self.key, self.histogram = key, histogram
        self.carried = 0  # number of executions in the histogram that an earlier part counts
        for name, value in figures.items():
            setattr(self, name, value)
        self.count_read = self.count

    def values(self) -> tuple[float, ...]:
        """Return the values of the trace's columns that are not in the key."""
        self.execution_sum_sq_ns2 = max(self.execution_sum_sq_ns2, 0.0)
        if self.min_ns == NONE_NS:
            self.min_ns = 0
        found: tuple[float, ...] = _values(self)
        return found

    def is_used(self) -> bool:
        """Return whether anything was added to the aggregate."""
        return self.count > 0 or any(_counters(self)) or bool(self.histogram)

    def timeline_figures(self) -> tuple[int, int, int]:
        """Return the aggregate's share of a timeline: calls, rows and self time in ns."""
        return self.count, self.rows, self.self_ns

    def add_calls(
        self, calls: int, errors: int, rows: int, total_ns: int, self_ns: int, least: int, most: int
    ) -> None:
        self.count += calls
        self.errors += errors
        self.rows += rows
        self.total_ns += total_ns
        self.self_ns += self_ns
        self.min_ns = min(self.min_ns, least)
        self.max_ns = max(self.max_ns, most)

    def move_duration(self, from_ns: int, to_ns: int) -> None:
        """Move an execution in the distribution, or add a new execution if `from_ns` is -1.

        Does not add the new duration if the distribution already contains the duration.
        """
        counts = dict(self.histogram)
        is_new = from_ns < 0
        whole = self.count + self.carried
        is_there = sum(counts.values()) >= (whole if is_new else whole + 1)
        if not is_new:
            bucket = _core.histogram_bucket(from_ns)
            if not counts.get(bucket):
                return  # the process emptied the rows in between
            counts[bucket] -= 1
            self.execution_sum_sq_ns2 -= float(from_ns) ** 2
        if not is_there:
            bucket = _core.histogram_bucket(to_ns)
            counts[bucket] = counts.get(bucket, 0) + 1
            self.execution_sum_sq_ns2 += float(to_ns) ** 2
        self.execution_max_ns = max(self.execution_max_ns, to_ns)
        self.histogram = [(bucket, count) for bucket, count in counts.items() if count]


MAX_READINGS = 20
"""How many times to read a running process until a reading sees no change."""


def aggregate_rows(region: Region) -> Iterable[AggregateRow]:
    """Return the aggregates to which something was added.

    If a process adds calls to its sums all the time, the few calls that are not added yet are
    missing.
    """
    for _ in range(MAX_READINGS):
        calls = region.packed_rows("calls")
        rows = region.whole_rows("aggregates", _COLUMNS)
        is_still = region.packed_rows("calls") == calls
        if is_still:
            break
    found = [_aggregate(region, row) for row in rows]
    if is_still and not region.continues:
        _PendingCalls(region, found).add_ended_calls(calls)
    for row in found:  # the process may have been killed between the two sums
        row.self_ns = min(row.self_ns, row.total_ns)
    return [row for row in found if row.is_used()]


_COLUMNS = (*KEY, *SUMS, *EXTREMES, *BEFORE, *HISTOGRAM, "carried")


def _aggregate(region: Region, row: tuple[Any, ...]) -> AggregateRow:
    figures = dict(zip(_COLUMNS, row, strict=True))
    key: Any = tuple([figures.pop(name) for name in KEY])
    histogram = region.histogram(*[figures.pop(name) for name in HISTOGRAM])
    carried = figures.pop("carried")
    for name, before, furthest in zip(EXTREMES, BEFORE, (min, max, max), strict=True):
        figures[name] = furthest(figures[name], figures.pop(before))
    found = AggregateRow(key, figures, histogram)
    found.carried = carried
    return found


class _PendingCalls:
    """Adds the ended calls of a killed process to its aggregates."""

    def __init__(self, region: Region, rows: list[AggregateRow]) -> None:
        self._region = region
        self._rows = rows
        self._by_key = {row.key: row for row in rows}

    def add_ended_calls(self, calls: bytes) -> None:
        """Add the ended calls in `calls`, packed rows of the region's table of calls."""
        names = [
            "stage",
            "ignored",
            *KEY,
            "serial",
            "started_ticks",
            "ticks",
            "nested_ticks",
            "rows",
            *(name for name in self._region.tables["calls"].columns if name.startswith("pending_")),
            "began_row",
            "count_before",
            "duration_ns",
            "settled_ns",
        ]
        columns = self._region.tables["calls"].columns
        names.sort(key=lambda name: columns[name].at)
        decoder = self._region.tables["calls"].decoder(names)
        for values in decoder.iter_unpack(calls):
            call = dict(zip(names, values, strict=True))
            if call["stage"] >= BEGUN and not call["ignored"]:
                self._add_ended_call(call)

    def _add_ended_call(self, call: dict[str, Any]) -> None:
        key: Key = tuple(call[name] for name in KEY)
        began = self._row(key)
        duration_ns, settled_ns = call["duration_ns"], call["settled_ns"]
        if call["stage"] == BEGUN or (
            call["stage"] == SETTLING
            and not self._was_added(call["began_row"], call["count_before"])
        ):
            duration_ns, settled_ns = self._region.ns(call["ticks"]), -1
            own_ns = self._self_ns(duration_ns, call["nested_ticks"])
            began.add_calls(1, 0, call["rows"], duration_ns, own_ns, duration_ns, duration_ns)
        elif call["stage"] == SETTLING:
            duration_ns, settled_ns = self._region.ns(call["ticks"]), -1
        if call["pending_calls"] > 0:
            duration_ns += self._add_ended_rows(key, call)
        if duration_ns != settled_ns:
            began.move_duration(settled_ns, duration_ns)

    def _add_ended_rows(self, key: Key, call: dict[str, Any]) -> int:
        calls, timed = call["pending_calls"], call["pending_timed_calls"]
        total_ns = self._region.ns(call["pending_ticks"])
        if 0 < timed < calls:
            total_ns = int(total_ns * calls / timed)
        is_added = call["pending_stage"] == SETTLING and self._was_added(
            call["pending_row"], call["pending_count_before"]
        )
        if not is_added:
            *owner, _ = key
            self._row((*owner, call["pending_operation"])).add_calls(
                calls,
                call["pending_errors"],
                call["pending_rows"],
                total_ns,
                self._self_ns(total_ns, call["pending_nested_ticks"]),
                self._region.ns(call["pending_min_ticks"]),
                self._region.ns(call["pending_max_ticks"]),
            )
        return total_ns

    def _was_added(self, number: int, count_before: int) -> bool:
        """Return whether a row's count has changed since a call stored it, so that the row contains
        the call.
        """
        row = self._rows[number] if number < len(self._rows) else None
        return row is not None and row.count_read != count_before

    def _self_ns(self, ns: int, nested_ticks: int) -> int:
        return max(0, ns - self._region.ns(nested_ticks))

    def _row(self, key: Key) -> AggregateRow:
        row = self._by_key.get(key)
        if row is None:
            row = AggregateRow(key, NO_CALLS, [])
            self._by_key[key] = row
            self._rows.append(row)
        return row
