"""Read the newest calls of a process from its region: those in the ring, and those that the process
had not added to it yet.
"""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

from queryprof.region.pending import BEGINNING, BEGUN, KEY, SETTLED, SETTLING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queryprof.region.pending import Key
    from queryprof.region.region import Region

    Row = tuple[int, int, int, int]
    """The id of the call's aggregate, its start (Unix time in ns), its duration in ns, and 1 if it
    failed.
    """

LATEST_UNIX_NS = 1 << 63


class CallChoice(NamedTuple):
    """Which of the newest calls of a process to keep.

    Attributes:
        start_unix_ns, end_unix_ns: keep only calls in this period.
        limit: the maximum number of calls of a process that ended by itself. A killed process keeps
            all, unless the limit is 0.
        in_windows: whether to keep calls of processes that record in windows.
    """

    start_unix_ns: int = 0
    end_unix_ns: int = LATEST_UNIX_NS
    limit: int = 1 << 32
    in_windows: bool = True


NO_CALLS = CallChoice(limit=0)
CALLS_IN_FILE = CallChoice(limit=8192, in_windows=False)
"""The calls that a trace file keeps: at most 0.2 MB of a process that ended by itself."""

COLUMNS = ("started_ticks", "duration_ns", "aggregate")
CALL = ("stage", "ignored", *KEY, "started_ticks", "ticks")


def recent_call_rows(
    region: Region, ids: Mapping[Key, int], choice: CallChoice, is_clean: bool
) -> list[Row]:
    """Return the newest calls that have ended.

    Args:
        ids: the ids of the aggregates by key. Calls of other aggregates are skipped.
        is_clean: whether the process ended by itself.
    """
    table = region.tables["recent_calls"]
    numbers = [ids.get(key) for key in region.rows("aggregates", KEY)]
    # A row that the process is overwriting differs between two readings.
    packed, again = region.packed_rows("recent_calls"), region.packed_rows("recent_calls")
    base_ticks, base_ns = region["base_ticks"], region["base_unix_ns"]
    ns_per_tick = region["ns_per_tick"]
    found = [
        (
            number,
            base_ns + int((start - base_ticks) * ns_per_tick),
            int(abs(duration_ns)),
            int(duration_ns < 0),
        )
        for (start, duration_ns, aggregate), same in zip(
            table.unpack_rows(packed, COLUMNS), table.unpack_rows(again, COLUMNS), strict=False
        )
        if start
        and aggregate < len(numbers)
        and (number := numbers[aggregate]) is not None
        and same == (start, duration_ns, aggregate)
    ]
    known = {start for _, start, *_ in found}
    oldest = min(known, default=LATEST_UNIX_NS)
    for stage, key, started, ticks in _calls(region, BEGUN, SETTLING, SETTLED):
        start, number = region.unix_ns(started), ids.get(key)
        # A settled call that is older than the ring was overwritten, and not missed.
        is_missed = start not in known and (stage != SETTLED or start > oldest)
        if number is not None and is_missed:
            found.append((number, start, region.ns(ticks), 0))
    found = [
        row
        for row in found
        if row[1] <= choice.end_unix_ns and row[1] + row[2] >= choice.start_unix_ns
    ]
    if is_clean and len(found) > choice.limit:
        found = sorted(found, key=itemgetter(1))[-choice.limit :]
    return sorted(found)  # SQLite adds rows faster in the order of the primary key


def open_calls(region: Region) -> Iterator[tuple[Key, int]]:
    """Yield the key of each call in progress, and its start (Unix time in ns)."""
    for _, key, started, ticks in _calls(region, BEGINNING):
        if not ticks:  # otherwise they still belong to the call before
            yield key, region.unix_ns(started)


def _calls(region: Region, *stages: int) -> Iterator[tuple[int, Key, int, int]]:
    for stage, ignored, *key, started, ticks in region.rows("calls", CALL):
        if stage in stages and started and not ignored:
            yield stage, tuple(key), started, ticks
