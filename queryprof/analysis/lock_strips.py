"""The state of each database's lock in the last minute, in equal pieces of time. A strip of
characters shows one character per piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queryprof.model.live import HeldLock, LockTime, ProcessActivity

MINUTE_NS = 60 * 10**9

FREE, HELD, WAITED = 0, 1, 2
"""States of a piece of time. HELD: a process held the write lock. WAITED: a call waited for a lock,
even if it is unknown who held it.
"""


@dataclass(frozen=True, slots=True)
class LockStrip:
    """The lock of one database in the last minute.

    Attributes:
        states: FREE, HELD or WAITED for each piece of the minute, oldest first.
        held: share of the minute in which the write lock was held, from 0 to 1.
        waits: number of calls that waited.
        longest_wait_ns: 0 if no call waited.
    """

    database: str
    states: tuple[int, ...]
    held: float
    waits: int
    longest_wait_ns: int


class RecentLocks:
    """Collects the lock times of all processes, including processes that have ended since."""

    def __init__(self) -> None:
        self._times: set[LockTime] = set()

    def add(self, processes: Iterable[ProcessActivity], now_unix_ns: int) -> None:
        """Add the lock times of a reading, and forget lock times that ended over a minute ago."""
        self._times.update(one for process in processes for one in process.lock_times)
        since_unix_ns = now_unix_ns - MINUTE_NS
        self._times = {
            one for one in self._times if one.start_unix_ns + one.duration_ns > since_unix_ns
        }

    def strips(
        self, held_now: Iterable[HeldLock], now_unix_ns: int, pieces: int
    ) -> tuple[LockStrip, ...]:
        """Return a strip of each database whose lock was used, most waits first.

        Args:
            held_now: write locks that have not been released. They count only for databases that
                also have lock times in the last minute.
            pieces: number of pieces of the minute, at least 1.
        """
        by_file: dict[tuple[str, int], list[LockTime]] = {}
        for time in self._times:
            by_file.setdefault((time.database, time.identity), []).append(time)
        held_now = list(held_now)
        for (database, identity), times in by_file.items():
            times.extend(
                LockTime(
                    database, identity, False, one.start_unix_ns, now_unix_ns - one.start_unix_ns
                )
                for one in held_now
                if one.identity == identity
            )
        strips = [
            _strip(database, times, now_unix_ns - MINUTE_NS, pieces)
            for (database, _), times in by_file.items()
        ]
        return tuple(sorted(strips, key=lambda one: (-one.waits, -one.held, one.database)))


def _strip(database: str, times: Sequence[LockTime], start_unix_ns: int, pieces: int) -> LockStrip:
    states, held_ns, waits = [FREE] * pieces, 0, []
    for one in times:
        begin_ns = max(0, one.start_unix_ns - start_unix_ns)
        end_ns = min(MINUTE_NS, one.start_unix_ns + one.duration_ns - start_unix_ns)
        if end_ns <= begin_ns:
            continue
        if one.is_wait:
            waits.append(one.duration_ns)
        else:
            held_ns += end_ns - begin_ns
        state = WAITED if one.is_wait else HELD
        for place in range(begin_ns * pieces // MINUTE_NS, -(-end_ns * pieces // MINUTE_NS)):
            states[place] = max(states[place], state)
    return LockStrip(
        database, tuple(states), min(1.0, held_ns / MINUTE_NS), len(waits), max(waits, default=0)
    )
