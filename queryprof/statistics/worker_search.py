"""Search for the number of workers at which a program completes most operations.

A search proposes a number of workers and needs one figure: the operations completed in an interval
(2 s, for example) with this number. Other modules start workers and count operations.
"""

from __future__ import annotations

from math import isfinite
from statistics import median
from typing import Protocol

from queryprof.statistics.throughput import (
    WorkersResult,
    estimate_variation,
    intervals_disagree,
    is_certainly_lower,
    throughput_curve,
)


class WorkerSearch(Protocol):
    """Proposes a number of workers, receives the operations of an interval with it, and repeats."""

    @property
    def workers(self) -> int:
        """The number to use in the next interval."""

    @property
    def best(self) -> int:
        """The best number so far; without any result, the first proposed number."""

    @property
    def is_settled(self) -> bool:
        """Whether `workers` stays at `best`. Further observations are then ignored."""

    def observe(self, operations: float) -> None:
        """Add the operations completed in an interval with `workers`."""


class SteadyWorkerSearch:
    """Measures a few numbers of workers, then numbers around the best, until the best is certain.

    1. Measure up to eight numbers from `lowest` to `highest`, with growing distances: first
        ascending, then descending, and the highest again at the end. This cancels a slow drift of
        the system.
    2. If two intervals of a number differ by more than the normal variation, one interval was
        probably a dip. Repeat the number until most intervals are at the upper end, or until it has
        five intervals.
    3. Measure the numbers half-way between the best number and its measured neighbours, until no
        unmeasured number is left between them.
    4. Alternate between the best number and its closest rival, until the 95% interval of their
        difference excludes 0, or both have `ENOUGH` intervals and count as equal. After S.
        Kalyanakrishnan and others, PAC Subset Selection in Stochastic Multi-armed Bandits (2012).

    The search ends after at most `MAX_INTERVALS`. Among equal numbers, the smallest is best.
    """

    MAX_INTERVALS = 40
    GRID = 8
    DOUBTED = 5
    ENOUGH = 6
    """Two numbers count as equal if their difference is not certain after this many intervals each.
    """

    EQUAL = 0.02
    """A number within this share of the best throughput counts as equal, if the difference is not
    certain.
    """

    def __init__(self, lowest: int, highest: int) -> None:
        check_bounds(lowest, highest)
        grid = _geometric_grid(lowest, highest, self.GRID)
        # The highest number comes last, because otherwise it would run twice in a row.
        self._planned = [*grid[1:], *reversed(grid[:-1]), highest]
        self._observations: dict[int, list[float]] = {}
        self._intervals = 0
        self.workers = self.best = lowest
        self.is_settled = lowest == highest

    @property
    def curve(self) -> tuple[WorkersResult, ...]:
        """The results of all measured numbers of workers."""
        return throughput_curve(self._observations)

    def observe(self, operations: float) -> None:
        check_operations(operations)
        if self.is_settled:
            return
        self._observations.setdefault(self.workers, []).append(operations)
        self._intervals += 1
        points = self.curve
        leader = max(points, key=lambda point: point.operations)
        following = None
        if self._intervals < self.MAX_INTERVALS:
            following = self._next_number(points, leader)
        self.best = self._fewest_equal(points, leader)
        self.is_settled = following is None
        self.workers = self.best if following is None else following

    def _next_number(self, points: tuple[WorkersResult, ...], leader: WorkersResult) -> int | None:
        """Return the number of workers to measure next; None if the search is finished.

        Avoids the current number if possible, because a dip may outlast an interval.
        """
        if self._planned:
            return self._planned.pop(0)
        wanted = [
            *self._doubtful_numbers(),
            *self._half_way_numbers(points, leader),
            *self._leader_and_rival(points, leader),
        ]
        others = [workers for workers in wanted if workers != self.workers]
        return next(iter(others or wanted), None)

    def _doubtful_numbers(self) -> list[int]:
        """Return the worker counts to measure again: counts with one interval, and counts whose
        scattered intervals have a low median.
        """
        varies = estimate_variation(self._observations)
        return [
            workers
            for workers, intervals in self._observations.items()
            if len(intervals) == 1
            or (
                varies
                and len(intervals) < self.DOUBTED
                and intervals_disagree(intervals, varies.deviation)
                and median(intervals) <= (min(intervals) + max(intervals)) / 2
            )
        ]

    def _half_way_numbers(
        self, points: tuple[WorkersResult, ...], leader: WorkersResult
    ) -> list[int]:
        """Return numbers half-way from the leader to its measured neighbours."""
        place = points.index(leader)
        neighbours = points[max(place - 1, 0) : place] + points[place + 1 : place + 2]
        middles = [(leader.workers + neighbour.workers) // 2 for neighbour in neighbours]
        return [middle for middle in middles if middle not in self._observations]

    def _leader_and_rival(
        self, points: tuple[WorkersResult, ...], leader: WorkersResult
    ) -> list[int]:
        """Return the leader and its most promising rival; the number with fewer intervals comes
        first.

        Return [] if every rival is certainly lower, or was measured often enough to count as equal.
        """
        rivals = [
            point
            for point in points
            if point != leader
            and not is_certainly_lower(point, leader)
            and min(point.intervals, leader.intervals) < self.ENOUGH
        ]
        if not rivals:
            return []
        rival = max(rivals, key=lambda point: point.operations + (point.half_width or 0))
        pair = sorted((rival, leader), key=lambda point: point.intervals)
        return [point.workers for point in pair]

    def _fewest_equal(self, points: tuple[WorkersResult, ...], leader: WorkersResult) -> int:
        """Return the smallest number of workers whose throughput counts as equal to the
        leader's.
        """
        least = leader.operations * (1 - self.EQUAL)
        return next(
            point.workers
            for point in points
            if point.operations >= least and not is_certainly_lower(point, leader)
        )


def _geometric_grid(lowest: int, highest: int, size: int) -> list[int]:
    """Return numbers from `lowest` to `highest` with a constant ratio, rounded."""
    ratio = (highest / lowest) ** (1 / (size - 1))
    return sorted({round(lowest * ratio**step) for step in range(size)})


def check_bounds(lowest: int, highest: int) -> None:
    """Raise ValueError if there is no number of workers between the bounds."""
    if not 1 <= lowest <= highest:
        raise ValueError(f"workers from {lowest} to {highest}: need 1 <= lowest <= highest")


def check_operations(operations: float) -> None:
    """Raise ValueError if an interval cannot have this number of operations."""
    if not (isfinite(operations) and operations >= 0):
        raise ValueError(f"{operations} operations in an interval: need a number from 0")
