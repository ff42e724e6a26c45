"""Count each hold of a lock once, and find which holds blocked a waiting call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from queryprof.model import LockEvent, LockHold, Profile

MAX_SLEEP_NS = 100_000_000
"""The longest time between two attempts of SQLite's busy handler (sqliteDefaultBusyCallback() in
its main.c).
"""

MAX_FOLLOWED = 4
"""The search for the cause of a wait follows at most this many holders, and at most this many waits
of each holder, longest first.
"""


def merge_hold_parts(holds: Sequence[LockHold]) -> tuple[LockHold, ...]:
    """Merge the rows of each hold, so that the hold counts once, in the row with its end.

    The recorder counts a long hold before the hold ends, in a row without an end. The rest of the
    hold's time is in the row of its end, without a count. This function joins the two rows.
    """
    rests = [hold for hold in holds if not hold.count]
    whole = {_hold_key(hold) + _hold_end_key(hold): hold for hold in holds if hold.count}
    for rest in rests:
        key = _hold_key(rest)
        begun = whole.pop((*key, *NO_END), None)
        end = (*key, *_hold_end_key(rest))
        known = whole.get(end)
        if not begun and not known:
            known = next((one for k, one in whole.items() if k[: len(key)] == key), None)
        parts = [one for one in (begun, rest, known) if one]
        if known:
            end = (*key, *_hold_end_key(known))
        whole[end] = sum_holds(parts, known or rest)
    return tuple(whole.values())


NO_END: tuple[object, ...] = ()


def _hold_end_key(hold: LockHold) -> tuple[object, ...]:
    return (hold.end_statement, hold.end_path) if hold.end_path else NO_END


def _hold_key(hold: LockHold) -> tuple[object, ...]:
    return hold.kind, hold.database, hold.statement, hold.path, hold.span, hold.thread


def sum_holds(parts: Sequence[LockHold], end: LockHold) -> LockHold:
    """Add up the parts of a hold. Return a copy of `end` with these sums."""
    changed = [one.changed_rows for one in parts]
    return replace(
        end,
        count=sum(one.count for one in parts),
        total_ns=sum(one.total_ns for one in parts),
        max_ns=max(one.max_ns for one in parts),
        database_ns=sum(one.database_ns for one in parts),
        database_of_ns=sum(one.database_of_ns for one in parts),
        changed_rows=None if None in changed else sum(one or 0 for one in changed),
        log_bytes=max(one.log_bytes for one in parts),
    )


def own_code_share(hold: LockHold) -> float | None:
    """Return the share of a hold in which the program's own code ran, or None if unknown."""
    if not hold.database_of_ns:
        return None
    return max(0.0, 1 - hold.database_ns / hold.database_of_ns)


def unique_events(events: Iterable[LockEvent]) -> list[LockEvent]:
    """Return each hold and wait once. During a long hold, the recorder also writes preliminary
    events.
    """
    found: list[LockEvent] = []
    last: dict[object, int] = {}
    for event in sorted(events, key=lambda one: one.start_unix_ns):
        key = _lock_owner_key(event), event.kind, event.database
        before = found[last[key]] if event.connection and key in last else None
        if before is None or _overlap_ns(before, event) <= 0:
            last[key] = len(found)
            found.append(event)
        # a connection can hold a lock only once at a time
        elif event.duration_ns > before.duration_ns:
            found[last[key]] = event
    return found


def _lock_owner_key(event: LockEvent) -> object:
    """Return the key of the lock's owner: the connection or, if unknown, the thread."""
    thread = event.thread
    return (thread.process_id, event.connection) if event.connection else thread


def overlap_ns(start_ns: int, duration_ns: int, other_start_ns: int, other_duration_ns: int) -> int:
    """Return how long two time spans overlap. A negative value is the gap between them."""
    end_ns = min(start_ns + duration_ns, other_start_ns + other_duration_ns)
    return end_ns - max(start_ns, other_start_ns)


def _overlap_ns(one: LockEvent, other: LockEvent) -> int:
    return overlap_ns(one.start_unix_ns, one.duration_ns, other.start_unix_ns, other.duration_ns)


def host_by_process(profile: Profile) -> dict[int, str]:
    """Return the host of each process by process number."""
    return {process.id: process.host for process in profile.processes}


class _SortedEvents:
    """Holds or waits, ordered by start."""

    def __init__(self, events: list[LockEvent]) -> None:
        self._events = sorted(events, key=lambda one: one.start_unix_ns)
        self._starts = [one.start_unix_ns for one in self._events]
        longest = 0  # the latest end so far, because read locks overlap
        self._ends = [
            longest := max(longest, one.start_unix_ns + one.duration_ns) for one in self._events
        ]

    def overlapping_events(self, event: LockEvent) -> list[tuple[LockEvent, int]]:
        """Return the events that overlap `event`, each with the length of the overlap in ns."""
        first = bisect_left(self._ends, event.start_unix_ns)
        last = bisect_right(self._starts, event.start_unix_ns + event.duration_ns)
        found = [(one, _overlap_ns(event, one)) for one in self._events[first:last]]
        return [(one, ns) for one, ns in found if ns > 0]


class LockHolders:
    """Find who held a database's lock while a call waited for it.

    A call that already holds the write lock waits for the readers, because SQLite cannot write its
    transaction before they finish (https://www.sqlite.org/lockingv3.html#writing). All other calls
    wait for the writer, or for the connection that blocks the writer.

    Args:
        events: lock events of any processes, on the same clock.
        hosts: each process's host by process number. The same path on another host is another file.
    """

    def __init__(
        self, events: Iterable[LockEvent], hosts: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        self._hosts = hosts
        found: dict[tuple[object, str], list[LockEvent]] = {}
        for event in unique_events(events):
            of = _lock_owner_key(event) if event.kind == "wait" else self._host_and_file(event)
            found.setdefault((of, event.kind), []).append(event)
        self._events = {key: _SortedEvents(some) for key, some in found.items()}

    def blockers_of(self, wait: LockEvent) -> list[tuple[LockEvent, int]]:
        """Return the holds that blocked a call, each with its blocking time in ns, longest first.
        While the lock's holder was itself waiting, the hold that blocked the holder counts instead.
        """
        found: dict[int, tuple[LockEvent, int]] = {}
        for hold, ns in self._parts_of_wait(wait):
            found[id(hold)] = hold, ns + found.get(id(hold), (hold, 0))[1]
        return sorted(found.values(), key=lambda item: -item[1])

    def _parts_of_wait(self, wait: LockEvent) -> Iterator[tuple[LockEvent, int]]:
        """Yield the parts of a wait, each with the hold that caused it. While a holder itself
        waits, the hold that blocks the holder is the cause.
        """
        for place, (hold, ns) in enumerate(self.refusing_holds(wait)):
            left_ns = ns
            for inner in self._waits_of_holder(hold, wait) if place < MAX_FOLLOWED else ():
                behind = self.refusing_holds(inner)
                yield from behind
                left_ns -= inner.duration_ns if behind else 0
            if left_ns > 0:
                yield hold, left_ns

    def _waits_of_holder(self, hold: LockEvent, wait: LockEvent) -> list[LockEvent]:
        """Return the waits of a lock's holder during `wait`, longest first."""
        waits = self._events_during(hold, _lock_owner_key(hold), "wait")
        parts = [_overlapping_part(_overlapping_part(waited, hold), wait) for waited, _ in waits]
        parts = [part for part in parts if part.duration_ns > 0]
        return sorted(parts, key=lambda part: -part.duration_ns)[:MAX_FOLLOWED]

    def refusing_holds(self, wait: LockEvent) -> list[tuple[LockEvent, int]]:
        """Return the other connections' holds of the awaited lock, each with its time in ns,
        longest first. The last hold includes the sleep before the waiter's next attempt.
        """
        own = _lock_owner_key(wait)
        writers = self._events_during(wait, self._host_and_file(wait), "write")
        writes = wait.writes or any(
            _lock_owner_key(hold) == own and hold.start_unix_ns <= wait.start_unix_ns
            for hold, _ in writers
        )
        holds = self._events_during(wait, self._host_and_file(wait), "read") if writes else writers
        others = [(hold, ns) for hold, ns in holds if _lock_owner_key(hold) != own]
        if others:
            last = max(range(len(others)), key=lambda at: _end_ns(others[at][0]))
            hold, ns = others[last]
            slept_ns = _end_ns(wait) - _end_ns(hold)
            if 0 < slept_ns <= MAX_SLEEP_NS:
                others[last] = hold, ns + slept_ns
        return sorted(others, key=lambda item: -item[1])

    def _host_and_file(self, event: LockEvent) -> object:
        return self._hosts.get(event.thread.process_id, ""), event.database

    def _events_during(
        self, event: LockEvent, of: object, kind: str
    ) -> list[tuple[LockEvent, int]]:
        known = self._events.get((of, kind))
        return known.overlapping_events(event) if known else []


def unseen_ns(wait: LockEvent, holds: Iterable[LockEvent]) -> int:
    """Return how much of a wait neither these holds nor SQLite's sleeps explain: the time before
    the first hold, and later any gap that is longer than a sleep.
    """
    unseen_ns, at_ns = 0, wait.start_unix_ns
    for hold in sorted(holds, key=lambda one: one.start_unix_ns):
        gap_ns = hold.start_unix_ns - at_ns
        if gap_ns > 0 and (at_ns == wait.start_unix_ns or gap_ns > MAX_SLEEP_NS):
            unseen_ns += gap_ns
        at_ns = max(at_ns, _end_ns(hold))
    rest_ns = _end_ns(wait) - at_ns
    return unseen_ns + (rest_ns if rest_ns > MAX_SLEEP_NS else 0)


def _end_ns(event: LockEvent) -> int:
    return event.start_unix_ns + event.duration_ns


def _overlapping_part(event: LockEvent, other: LockEvent) -> LockEvent:
    """Return the part of an event that overlaps another event; 0 ns if there is no overlap."""
    start_ns = max(event.start_unix_ns, other.start_unix_ns)
    return replace(event, start_unix_ns=start_ns, duration_ns=max(0, _overlap_ns(event, other)))
