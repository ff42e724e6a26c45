"""Holds of locks, each counted once with its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from queryprof.model import LockHold


def whole_holds(holds: Sequence[LockHold]) -> tuple[LockHold, ...]:
    """The sums of holds, where each hold is in the sums of its end alone.

    The recorder counts a long hold while it goes on, its end not being known; what comes after that is
    time without a count, in the sums of its end. Here both are one.
    """
    rests = [hold for hold in holds if not hold.count]
    whole = {_key(hold) + _end(hold): hold for hold in holds if hold.count}
    for rest in rests:
        key = _key(rest)
        begun = whole.pop((*key, *NO_END), None)
        end = (*key, *_end(rest))
        known = whole.get(end) or next(
            (one for k, one in whole.items() if k[: len(key)] == key), None
        )
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
