"""Holds of locks, each counted once with its end, and who waited for them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from queryprof.model import LockEvent, LockHold, Profile

LONGEST_SLEEP_NS = 100_000_000
"""SQLite's busy handler looks again after so long at the most (sqliteDefaultBusyCallback() in its
main.c)."""

LOOKED_BEHIND = 4
"""The holders of a wait, and the waits of each, the longest, that are looked behind: a trace may
have any number of them.
"""


def whole_holds(holds: Sequence[LockHold]) -> tuple[LockHold, ...]:
    """The sums of holds, where each hold is in the sums of its end alone.

    The recorder counts a long hold while it goes on, its end not being known; what comes after that
    is time without a count, in the sums of its end. Here both are one.
    """
    rests = [hold for hold in holds if not hold.count]
    whole = {_key(hold) + _end(hold): hold for hold in holds if hold.count}
    for rest in rests:
        key = _key(rest)
        begun = whole.pop((*key, *NO_END), None)
        end = (*key, *_end(rest))
        known = whole.get(end)
        if not begun and not known:
            known = next((one for k, one in whole.items() if k[: len(key)] == key), None)
        parts = [one for one in (begun, rest, known) if one]
        if known:
            end = (*key, *_end(known))
        whole[end] = sum_of(parts, known or rest)
    return tuple(whole.values())


NO_END: tuple[object, ...] = ()


def _end(hold: LockHold) -> tuple[object, ...]:
    return (hold.end_statement, hold.end_path) if hold.end_path else NO_END


def _key(hold: LockHold) -> tuple[object, ...]:
    return hold.kind, hold.database, hold.statement, hold.path, hold.span, hold.thread


def sum_of(parts: Sequence[LockHold], end: LockHold) -> LockHold:
    """The sums of holds, as one that is otherwise like `end`."""
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


def own_code(hold: LockHold) -> float | None:
    """The share of a hold in which the program's own code ran; None: unknown."""
    if not hold.database_of_ns:
        return None
    return max(0.0, 1 - hold.database_ns / hold.database_of_ns)


def whole_events(events: Iterable[LockEvent]) -> list[LockEvent]:
    """Holds and waits, each once: of a long hold the recorder keeps an event while it goes
    on, too.
    """
    found: list[LockEvent] = []
    last: dict[object, int] = {}
    for event in sorted(events, key=lambda one: one.start_unix_ns):
        key = _connection(event), event.kind, event.database
        before = found[last[key]] if event.connection and key in last else None
        if before is None or _overlap_ns(before, event) <= 0:
            last[key] = len(found)
            found.append(event)
        elif event.duration_ns > before.duration_ns:  # a connection holds a lock once at a time
            found[last[key]] = event
    return found


def _connection(event: LockEvent) -> object:
    """Whose lock it is: the connection's; where that is unknown, the thread's."""
    thread = event.thread
    return (thread.process_id, event.connection) if event.connection else thread


def overlap_ns(start_ns: int, duration_ns: int, other_start_ns: int, other_duration_ns: int) -> int:
    """How long two spans of time are one; negative: how far they are apart."""
    end_ns = min(start_ns + duration_ns, other_start_ns + other_duration_ns)
    return end_ns - max(start_ns, other_start_ns)


def _overlap_ns(one: LockEvent, other: LockEvent) -> int:
    return overlap_ns(one.start_unix_ns, one.duration_ns, other.start_unix_ns, other.duration_ns)


def hosts_of(profile: Profile) -> dict[int, str]:
    """The hosts of processes, by their numbers."""
    return {process.id: process.host for process in profile.processes}


class _Sorted:
    """Holds or waits, in the order in which they began."""

    def __init__(self, events: list[LockEvent]) -> None:
        self._events = sorted(events, key=lambda one: one.start_unix_ns)
        self._starts = [one.start_unix_ns for one in self._events]
        longest = 0  # of all until then: readers' locks are held side by side
        self._ends = [
            longest := max(longest, one.start_unix_ns + one.duration_ns) for one in self._events
        ]

    def during(self, event: LockEvent) -> list[tuple[LockEvent, int]]:
        """Those that were at the same time as another one, each with that time (ns)."""
        first = bisect_left(self._ends, event.start_unix_ns)
        last = bisect_right(self._starts, event.start_unix_ns + event.duration_ns)
        found = [(one, _overlap_ns(event, one)) for one in self._events[first:last]]
        return [(one, ns) for one, ns in found if ns > 0]


class Holders:
    """Finds who held a database's lock that a call waited for.

    A call that holds the write lock itself waits for the readers: its transaction cannot be written
    before they are done (https://www.sqlite.org/lockingv3.html#writing). All others wait for who
    writes, or who keeps that one waiting meanwhile.

    Args:
        events: of any processes, by the same clock.
        hosts: of processes, by their numbers: a path is another file on each.
    """

    def __init__(
        self, events: Iterable[LockEvent], hosts: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        self._hosts = hosts
        found: dict[tuple[object, str], list[LockEvent]] = {}
        for event in whole_events(events):
            of = _connection(event) if event.kind == "wait" else self._file(event)
            found.setdefault((of, event.kind), []).append(event)
        self._events = {key: _Sorted(some) for key, some in found.items()}

    def of(self, wait: LockEvent) -> list[tuple[LockEvent, int]]:
        """Who kept a call waiting, each with the time (ns); most first: who had the lock, or who
        kept that one waiting meanwhile.
        """
        found: dict[int, tuple[LockEvent, int]] = {}
        for hold, ns in self._causes(wait):
            found[id(hold)] = hold, ns + found.get(id(hold), (hold, 0))[1]
        return sorted(found.values(), key=lambda item: -item[1])

    def _causes(self, wait: LockEvent) -> Iterator[tuple[LockEvent, int]]:
        """The same, in parts: while a holder waits itself, others keep it from going on."""
        for place, (hold, ns) in enumerate(self.direct(wait)):
            left_ns = ns
            for inner in self._waits_of(hold, wait) if place < LOOKED_BEHIND else ():
                behind = self.direct(inner)
                yield from behind
                left_ns -= inner.duration_ns if behind else 0
            if left_ns > 0:
                yield hold, left_ns

    def _waits_of(self, hold: LockEvent, wait: LockEvent) -> list[LockEvent]:
        """What a holder waited for while it kept a call waiting; the longest first."""
        waits = self._during(hold, _connection(hold), "wait")
        parts = [_common(_common(waited, hold), wait) for waited, _ in waits]
        parts = [part for part in parts if part.duration_ns > 0]
        return sorted(parts, key=lambda part: -part.duration_ns)[:LOOKED_BEHIND]

    def direct(self, wait: LockEvent) -> list[tuple[LockEvent, int]]:
        """Who had the lock that was refused, each with the time (ns) that the wait was for it; most
        first. Up to the waiter's next look it is for the last one.
        """
        own = _connection(wait)
        writers = self._during(wait, self._file(wait), "write")
        writes = wait.writes or any(
            _connection(hold) == own and hold.start_unix_ns <= wait.start_unix_ns
            for hold, _ in writers
        )
        holds = self._during(wait, self._file(wait), "read") if writes else writers
        others = [(hold, ns) for hold, ns in holds if _connection(hold) != own]
        if others:
            last = max(range(len(others)), key=lambda at: _end_ns(others[at][0]))
            hold, ns = others[last]
            slept_ns = _end_ns(wait) - _end_ns(hold)
            if 0 < slept_ns <= LONGEST_SLEEP_NS:
                others[last] = hold, ns + slept_ns
        return sorted(others, key=lambda item: -item[1])

    def _file(self, event: LockEvent) -> object:
        return self._hosts.get(event.thread.process_id, ""), event.database

    def _during(self, event: LockEvent, of: object, kind: str) -> list[tuple[LockEvent, int]]:
        known = self._events.get((of, kind))
        return known.during(event) if known else []


def unseen_ns(wait: LockEvent, holds: Iterable[LockEvent]) -> int:
    """How long a wait was at times when none of these holds was, and that no sleep of SQLite's
    explains: at its begin, and whatever is longer than a sleep later.
    """
    unseen_ns, at_ns = 0, wait.start_unix_ns
    for hold in sorted(holds, key=lambda one: one.start_unix_ns):
        gap_ns = hold.start_unix_ns - at_ns
        if gap_ns > 0 and (at_ns == wait.start_unix_ns or gap_ns > LONGEST_SLEEP_NS):
            unseen_ns += gap_ns
        at_ns = max(at_ns, _end_ns(hold))
    rest_ns = _end_ns(wait) - at_ns
    return unseen_ns + (rest_ns if rest_ns > LONGEST_SLEEP_NS else 0)


def _end_ns(event: LockEvent) -> int:
    return event.start_unix_ns + event.duration_ns


def _common(event: LockEvent, other: LockEvent) -> LockEvent:
    """The part of an event at the time of another one; it lasts 0 ns where there is none."""
    start_ns = max(event.start_unix_ns, other.start_unix_ns)
    return replace(event, start_unix_ns=start_ns, duration_ns=max(0, _overlap_ns(event, other)))
