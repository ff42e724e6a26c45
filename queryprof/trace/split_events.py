"""Merge events that continued when a window ended.

Both windows contain such an event, and the later window has its total time. A profile of several
windows has each event once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from queryprof.model import Exemplar, LockEvent, StallEvent

Event = TypeVar("Event", Exemplar, LockEvent, StallEvent)

NEAR_NS = 1_000_000
"""Maximum difference between the two starts of one execution. The windows convert times at slightly
different rates.
"""


def unique_exemplars(events: Iterable[Exemplar], in_windows: Container[int]) -> list[Exemplar]:
    """Return the executions without duplicates, longest first.

    Two executions of a statement in the same thread and call path are duplicates if their times
    overlap and their starts are at most NEAR_NS apart.

    Args:
        in_windows: ids of processes that record in windows. Others have each event once.
    """

    def key(one: Exemplar) -> object:
        if one.thread is None or one.thread.process_id not in in_windows:
            return None
        return one.statement, one.path, one.span, one.thread, one.operation

    found = _drop_duplicates(events, key, lambda one: one.started_unix_ns, NEAR_NS)
    return sorted(found, key=lambda one: -one.duration_ns)


def unique_locks(events: Iterable[LockEvent], in_windows: Container[int]) -> tuple[LockEvent, ...]:
    """Return holds and waits without duplicates: a connection has one lock of a kind at a time."""

    def key(one: LockEvent) -> object:
        process_id = one.thread.process_id
        is_known = one.connection and one.kind != "wait" and process_id in in_windows
        return (process_id, one.kind, one.database, one.connection) if is_known else None

    return tuple(_drop_duplicates(events, key, lambda one: one.start_unix_ns))


def unique_stalls(events: Iterable[StallEvent]) -> list[StallEvent]:
    """Return the stalls of a loop in one thread without duplicates: the loop has one stall at a
    time.
    """
    return _drop_duplicates(events, lambda _: True, lambda one: one.started_unix_ns)


def _drop_duplicates(
    events: Iterable[Event],
    key: Callable[[Event], object],
    start: Callable[[Event], int],
    near_ns: int | None = None,
) -> list[Event]:
    """Return the events sorted by start. If events with the same key overlap, keep the one that
    ends last.

    Args:
        key: returns None for events that have no duplicates.
        near_ns: maximum distance between the starts of duplicates; None for any distance.
    """
    found: list[Event] = []
    last: dict[object, int] = {}
    for one in sorted(events, key=start):
        of = key(one)
        at = last.get(of) if of is not None else None
        if at is not None:
            known = found[at]
            is_near = near_ns is None or start(one) - start(known) <= near_ns
            if is_near and start(one) < start(known) + known.duration_ns:
                if start(one) + one.duration_ns > start(known) + known.duration_ns:
                    found[at] = one
                continue
        last[of] = len(found)
        found.append(one)
    return found
