"""The aggregates of a region, with what a killed process had noted and not yet added up.

A call notes what it measured; a few are added up together. So of a process that was killed, the
calls that had ended are beside the sums. The stage of each, stored after the values that it covers,
and the count that the sums' row had before show which of them are in the sums (see
queryprof/core/executions.h). So counts are exact whenever the process was killed; the times of the
calls that were being added up may be missing, or be there twice. The arithmetic is the core's.
"""

from __future__ import annotations

from operator import itemgetter

from queryprof.core import _core
from queryprof.trace.tables import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from queryprof.region.region import Region

    Key = tuple[int, int, int, int, int]

BEGUN, SETTLING, SETTLED = 2, 3, 4
NONE_NS = (1 << 63) - 1
"""The shortest call where there is none."""

KEY = ("statement", "path", "span", "thread", "operation")
SUMS = TABLE["aggregate"].sums
EXTREMES = ("min_ns", "max_ns", "execution_max_ns")
_IN_ORDER = itemgetter(*[(*SUMS, *EXTREMES).index(name) for name in TABLE["aggregate"].values])
BEFORE = ("min_before_ns", "max_before_ns", "execution_max_before_ns")
HISTOGRAM = ("durations_spread", "durations_bucket", "durations_count")


class AggregateRow:
    """An aggregate of a region: its key, its sums, its extremes and its histogram."""

    __slots__ = ("count_read", "extremes", "histogram", "key", "sums")

    def __init__(
        self,
        key: Key,
        sums: list[float],
        extremes: list[int],
        histogram: list[tuple[int, int]],
    ) -> None:
        self.key, self.sums, self.extremes, self.histogram = key, sums, extremes, histogram
        self.count_read = sums[0]

    def values(self) -> tuple[float, ...]:
        """The values of the trace's columns beside the key."""
        shortest, *longest = self.extremes
        sums = self.sums.copy()
        sums[5] = max(sums[5], 0.0)
        found: tuple[float, ...] = _IN_ORDER(
            [*sums, 0 if shortest == NONE_NS else shortest, *longest]
        )
        return found

    def plotted(self) -> tuple[int, int, int]:
        """What a timeline has of it: calls, rows and their own time in ns."""
        calls, _, rows, _, self_ns = self.sums[:5]
        return int(calls), int(rows), int(self_ns)

    def add_calls(
        self, calls: int, errors: int, rows: int, total_ns: int, self_ns: int, least: int, most: int
    ) -> None:
        for place, value in enumerate((calls, errors, rows, total_ns, self_ns)):
            self.sums[place] += value
        self.extremes[0] = min(self.extremes[0], least)
        self.extremes[1] = max(self.extremes[1], most)

    def move(self, from_ns: int, to_ns: int) -> None:
        """Moves an execution in the distribution; from -1: it is new. If the distribution is
        complete, it is there already.
        """
        counts = dict(self.histogram)
        is_new = from_ns < 0
        is_there = sum(counts.values()) >= (self.sums[0] if is_new else self.sums[0] + 1)
        if not is_new:
            bucket = _core.histogram_bucket(from_ns)
            if not counts.get(bucket):
                return  # the rows were emptied in between
            counts[bucket] -= 1
            self.sums[5] -= float(from_ns) ** 2
        if not is_there:
            bucket = _core.histogram_bucket(to_ns)
            counts[bucket] = counts.get(bucket, 0) + 1
            self.sums[5] += float(to_ns) ** 2
        self.extremes[2] = max(self.extremes[2], to_ns)
        self.histogram = [(bucket, count) for bucket, count in counts.items() if count]


TRIES = 20
"""The most readings of a running process, until nothing changes during one."""


def aggregate_rows(region: Region) -> Iterable[AggregateRow]:
    """The aggregates that something was added to. Of a process that adds up all the time, without
    the few calls that are not added yet.
    """
    for _ in range(TRIES):
        calls = region.packed("calls")
        rows = region.whole_rows("aggregates", _COLUMNS)
        is_still = region.packed("calls") == calls
        if is_still:
            break
    found = [_aggregate(region, row) for row in rows]
    if is_still:
        _Settling(region, found).settle(calls)
    return [row for row in found if row.sums[0] or any(row.sums[6:])]


_COLUMNS = (*KEY, *SUMS, *EXTREMES, *BEFORE, *HISTOGRAM)


def _aggregate(region: Region, row: tuple[Any, ...]) -> AggregateRow:
    extremes, before = row[19:22], row[22:25]
    return AggregateRow(
        row[:5],
        list(row[5:19]),
        [min(extremes[0], before[0]), max(extremes[1], before[1]), max(extremes[2], before[2])],
        region.histogram(*row[25:]),
    )


class _Settling:
    """Adds the ended calls of a killed process to its aggregates."""

    def __init__(self, region: Region, rows: list[AggregateRow]) -> None:
        self._region = region
        self._rows = rows
        self._by_key = {row.key: row for row in rows}

    def settle(self, calls: bytes) -> None:
        """Adds the calls in these rows."""
        names = [
            "stage", "ignored", *KEY, "serial", "started_ticks", "ticks", "nested_ticks", "rows",
            *(name for name in self._region.tables["calls"].columns if name.startswith("pending_")),
            "began_row", "count_before", "duration_ns", "settled_ns",
        ]  # fmt: skip
        columns = self._region.tables["calls"].columns
        names.sort(key=lambda name: columns[name].at)
        decoder = self._region.tables["calls"].decoder(names)
        for values in decoder.iter_unpack(calls):
            call = dict(zip(names, values, strict=True))
            if call["stage"] >= BEGUN and not call["ignored"]:
                self._settle(call)

    def _settle(self, call: dict[str, Any]) -> None:
        key: Key = tuple(call[name] for name in KEY)
        began = self._row(key)
        duration_ns, settled_ns = call["duration_ns"], call["settled_ns"]
        if call["stage"] == BEGUN or (
            call["stage"] == SETTLING
            and not self._was_added(call["began_row"], call["count_before"])
        ):
            duration_ns, settled_ns = self._region.ns(call["ticks"]), -1
            own_ns = self._own(duration_ns, call["nested_ticks"])
            began.add_calls(1, 0, call["rows"], duration_ns, own_ns, duration_ns, duration_ns)
        elif call["stage"] == SETTLING:
            duration_ns, settled_ns = self._region.ns(call["ticks"]), -1
        if call["pending_calls"] > 0:
            duration_ns += self._settle_rows(key, call)
        if duration_ns != settled_ns:
            began.move(settled_ns, duration_ns)

    def _settle_rows(self, key: Key, call: dict[str, Any]) -> int:
        calls, timed = call["pending_calls"], call["pending_timed_calls"]
        total_ns = self._region.ns(call["pending_ticks"])
        if 0 < timed < calls:
            total_ns = int(total_ns * calls / timed)
        is_added = call["pending_stage"] == SETTLING and self._was_added(
            call["pending_row"], call["pending_count_before"]
        )
        if not is_added:
            self._row((*key[:4], call["pending_operation"])).add_calls(
                calls, call["pending_errors"], call["pending_rows"], total_ns,
                self._own(total_ns, call["pending_nested_ticks"]),
                self._region.ns(call["pending_min_ticks"]),
                self._region.ns(call["pending_max_ticks"]),
            )  # fmt: skip
        return total_ns

    def _was_added(self, number: int, count_before: int) -> bool:
        """Whether calls were added to the count that a row had before."""
        row = self._rows[number] if number < len(self._rows) else None
        return row is not None and row.count_read != count_before

    def _own(self, ns: int, nested_ticks: int) -> int:
        return max(0, ns - self._region.ns(nested_ticks))

    def _row(self, key: Key) -> AggregateRow:
        row = self._by_key.get(key)
        if row is None:
            row = AggregateRow(key, [0] * 5 + [0.0] + [0] * 8, [NONE_NS, 0, 0], [])
            self._by_key[key] = row
            self._rows.append(row)
        return row
