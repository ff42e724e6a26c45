"""Read the newest calls of a process from its region: the calls in the ring buffer, and calls that
the process had not added to the ring yet.
"""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

from queryprof.core.wall_clock import LATEST_UNIX_NS
from queryprof.region.pending import BEGINNING, KEY, SETTLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from queryprof.region.pending import Key
    from queryprof.region.region import Region

    Row = tuple[int, int, int, int]
    """The id of the call's aggregate, its start (Unix time in ns), its duration in ns, and 1 if it
    failed.
    """

MAX_NS = 1e18
"""The longest plausible duration of a call: 30 years."""


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
CALL = (
    *("stage", "in_use", "ignored", *KEY, "started_ticks", "ticks"),
    *("pending_calls", "pending_ticks", "pending_timed_calls"),
)


class _Execution(NamedTuple):
    """An execution in the region's table of calls.

    Attributes:
        is_open: whether one of its calls is in progress.
        fetched_ns: the time of fetches that have ended and are not in the ring.
    """

    stage: int
    key: Key
    start_unix_ns: int
    duration_ns: int
    fetched_ns: int
    is_open: bool


def recent_call_rows(
    region: Region, ids: Mapping[Key, int], choice: CallChoice, is_clean: bool
) -> list[Row]:
    """Return the newest calls that have ended.

    Args:
        ids: the ids of the aggregates by key. Calls of other aggregates are skipped.
        is_clean: whether the process ended by itself.
    """
    found = _ring(region, ids)
    oldest = min((start for _, start in found), default=LATEST_UNIX_NS)
    for one in _executions(region):
        number = ids.get(one.key)
        if number is None:
            continue
        call = number, one.start_unix_ns
        if one.is_open:
            found.pop(call, None)
        elif call in found:
            duration_ns, failed = found[call]
            found[call] = duration_ns + one.fetched_ns, failed
        # A settled call that is older than the ring was in the ring, and has been overwritten.
        elif one.stage != SETTLED or one.start_unix_ns > oldest:
            found[call] = one.duration_ns + one.fetched_ns, 0
    rows = rows_in_period([(*call, *facts) for call, facts in found.items()], choice)
    if is_clean and len(rows) > choice.limit:
        rows = sorted(rows, key=itemgetter(1))[-choice.limit :]
    return sorted(rows)  # SQLite adds rows faster in the order of the primary key


def rows_in_period(rows: Iterable[Row], choice: CallChoice) -> list[Row]:
    """Return the calls in a period, and the newest call of each aggregate before the period. These
    older calls show that no call of the period was overwritten.
    """
    wanted: list[Row] = []
    before: dict[int, Row] = {}
    for row in rows:
        number, start_unix_ns, duration_ns, _ = row
        if start_unix_ns > choice.end_unix_ns:
            continue
        if start_unix_ns + duration_ns >= choice.start_unix_ns:
            wanted.append(row)
        elif number not in before or start_unix_ns > before[number][1]:
            before[number] = row
    return [*before.values(), *wanted]


def _ring(region: Region, ids: Mapping[Key, int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the calls of the ring: by aggregate's id and start (Unix time in ns), the duration in
    ns, and 1 if the call failed.
    """
    table = region.tables["recent_calls"]
    numbers = [ids.get(key) for key in region.rows("aggregates", KEY)]
    # A row that the process is overwriting differs between two readings.
    packed, again = region.packed_rows("recent_calls"), region.packed_rows("recent_calls")
    base_ticks, base_ns = region["base_ticks"], region["base_unix_ns"]
    ns_per_tick = region["ns_per_tick"]
    found = {}
    for row, same in zip(
        table.unpack_rows(packed, COLUMNS), table.unpack_rows(again, COLUMNS), strict=False
    ):
        start, duration_ns, aggregate = row
        if not start or row != same or aggregate >= len(numbers):
            continue
        start_unix_ns = base_ns + int((start - base_ticks) * ns_per_tick)
        number = numbers[aggregate]
        is_possible = 0 < start_unix_ns <= LATEST_UNIX_NS and abs(duration_ns) <= MAX_NS
        if number is not None and is_possible:
            found[number, start_unix_ns] = int(abs(duration_ns)), int(duration_ns < 0)
    return found


def open_calls(region: Region) -> Iterator[tuple[Key, int]]:
    """Yield the key of each execution with a call in progress, and its start (Unix time in ns)."""
    for one in _executions(region):
        if one.is_open:
            yield one.key, one.start_unix_ns


def _executions(region: Region) -> Iterator[_Execution]:
    for stage, in_use, ignored, *rest in region.rows("calls", CALL):
        *key, started, ticks, fetches, fetch_ticks, timed = rest
        is_stale = stage == BEGINNING and ticks  # the row still has the previous execution
        if ignored or not started or is_stale or stage < BEGINNING:
            continue
        fetched_ns = region.ns(fetch_ticks) if fetches > 0 else 0
        if 0 < timed < fetches:
            fetched_ns = int(fetched_ns * fetches / timed)
        yield _Execution(
            stage,
            tuple(key),
            region.unix_ns(started),
            region.ns(ticks),
            fetched_ns,
            stage == BEGINNING or bool(in_use),
        )
