"""Events that went on when a window ended: they are in both windows, in the later one with all of
their time. In a profile of several windows each is there once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from queryprof.model import Exemplar, LockEvent, StallEvent

Event = TypeVar("Event", Exemplar, LockEvent, StallEvent)

NEAR_NS = 1_000_000
"""How far apart the two starts of one execution may be: they are converted by the rates of two
windows."""


def exemplars_once(events: Iterable[Exemplar], in_windows: Container[int]) -> list[Exemplar]:
    """Executions, the longest first. Two of one place and thread are the same if their times
    overlap and they began nearly at once.

    Args:
        in_windows: the ids of processes that record in windows; the others have each event once.
    """

    def key(one: Exemplar) -> object:
        if one.thread is None or one.thread.process_id not in in_windows:
            return None
        return one.statement, one.path, one.span, one.thread, one.operation

    found = _each_once(events, key, lambda one: one.started_unix_ns, NEAR_NS)
    return sorted(found, key=lambda one: -one.duration_ns)


def locks_once(events: Iterable[LockEvent], in_windows: Container[int]) -> tuple[LockEvent, ...]:
    """Holds of locks and waits: a connection has one lock of a kind at a time."""

    def key(one: LockEvent) -> object:
        process_id = one.thread.process_id
        is_known = one.connection and one.kind != "wait" and process_id in in_windows
        return (process_id, one.kind, one.database, one.connection) if is_known else None

    return tuple(_each_once(events, key, lambda one: one.start_unix_ns))


def stalls_once(events: Iterable[StallEvent]) -> list[StallEvent]:
    """The stalls of one loop in a thread of a process in windows: it has one at a time."""
    return _each_once(events, lambda _: True, lambda one: one.started_unix_ns)


def _each_once(
    events: Iterable[Event],
    key: Callable[[Event], object],
    start: Callable[[Event], int],
    near_ns: int | None = None,
) -> list[Event]:
    """Events by their starts; of those of one key that overlap, that which ended last.

    Args:
        key: None: it is one of its own.
        near_ns: how far apart the starts of the same are at the most; None: as far as they overlap.
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
