"""The lock of each database in the last minute, in equal pieces of time."""

from __future__ import annotations

from queryprof.analysis.lock_strips import FREE, HELD, WAITED, RecentLocks
from queryprof.model.live import HeldLock, LockTime, ProcessActivity

SECOND = 10**9
NOW = 1_000 * SECOND
BEGIN = NOW - 60 * SECOND


def process(pid: int, *times: LockTime) -> ProcessActivity:
    return ProcessActivity(pid, ("app",), "/", False, SECOND, (), (), lock_times=times)


def held(at_s: float, seconds: float, database: str = "a.db") -> LockTime:
    return LockTime(database, 1, False, BEGIN + int(at_s * SECOND), int(seconds * SECOND))


def waited(at_s: float, seconds: float, file: int = 1) -> LockTime:
    return LockTime("a.db", file, True, BEGIN + int(at_s * SECOND), int(seconds * SECOND))


def test_times_fill_the_pieces_that_they_touch() -> None:
    """A wait is shown in place of the hold that it waits for. A hold from before the minute counts
    from its start. The order of the processes does not matter.
    """
    locks = RecentLocks()
    locks.add([process(1, held(-5, 15), held(30, 20)), process(2, waited(35, 10))], NOW)
    (strip,) = locks.strips((), NOW, 6)
    assert strip.states == (HELD, FREE, FREE, WAITED, WAITED, FREE)
    assert strip.held == 0.5
    assert (strip.waits, strip.longest_wait_ns) == (1, 10 * SECOND)


def test_a_short_time_fills_one_piece() -> None:
    locks = RecentLocks()
    locks.add([process(1, held(10.001, 0.001), held(59.998, 0.001))], NOW)
    (strip,) = locks.strips((), NOW, 60)
    assert [place for place, state in enumerate(strip.states) if state == HELD] == [10, 59]


def test_times_of_two_readings() -> None:
    """A time that two readings contain counts once. A time that ended over a minute ago is
    forgotten, also if a recording still contains it.
    """
    locks, old = RecentLocks(), held(1, 1)
    locks.add([process(1, old, held(30, 6))], NOW)
    locks.add([process(1, old, held(30, 6))], NOW + 2 * SECOND)
    (strip,) = locks.strips((), NOW + 2 * SECOND, 60)
    assert strip.held == 0.1
    assert sum(state == HELD for state in strip.states) == 6


def test_databases_with_most_waits_come_first() -> None:
    locks = RecentLocks()
    locks.add([process(1, held(0, 50, "b.db"), held(0, 1), waited(0, 1), held(5, 3, "c.db"))], NOW)
    assert [one.database for one in locks.strips((), NOW, 10)] == ["a.db", "b.db", "c.db"]


def test_a_lock_that_is_not_released_is_held_until_now() -> None:
    """It belongs to the database with its file."""
    now = HeldLock(1, "MainThread", "BEGIN", (), 7, NOW - 30 * SECOND)
    locks = RecentLocks()
    locks.add([process(1, waited(45, 1, 7), waited(1, 1, 8))], NOW)
    same, other = locks.strips([now], NOW, 4)
    assert same.states == (FREE, FREE, HELD, WAITED)
    assert same.held == 0.5
    assert other.states == (WAITED, FREE, FREE, FREE)
