"""Search for the number of workers at which a program completes most operations.

A search needs one figure: the operations completed in an interval (of 2 s, for example) with the
number of workers that it proposes. Other modules start workers and count operations.
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

    1. Measure up to eight numbers from `lowest` to `highest`, with growing distances, on the way
       up and again on the way down. The highest comes at the end. So a slow drift of the system
       hardly changes the order of the numbers.
    2. If two intervals differ by more than the normal variation, one interval was a dip. Measure
       more, until most intervals are at the upper end, or until five have shown that the upper
       interval was the exception.
    3. Measure the numbers half-way from the best to its measured neighbours, until none is left.
    4. Repeat the best number and the number that may be better alternately, until the 95% interval
       of their difference excludes 0, or both have been measured often enough to be called equal.
       After S. Kalyanakrishnan and others, PAC Subset Selection in Stochastic Multi-armed Bandits
       (2012).

    The search ends after `MAX_INTERVALS` at the latest. Among equals, the fewest workers are best.
    """

    MAX_INTERVALS = 40
    GRID = 8
    DOUBTED = 5
    ENOUGH = 6
    """Two numbers are equal if they do not differ after this many intervals each."""

    EQUAL = 0.02
    """A share below the best that counts as equal, if the difference is not certain."""

    def __init__(self, lowest: int, highest: int) -> None:
        check_bounds(lowest, highest)
        grid = _geometric_grid(lowest, highest, self.GRID)
        # The highest comes last, so that it does not run twice in a row.
        self._planned = [*grid[1:], *reversed(grid[:-1]), highest]
        self._observations: dict[int, list[float]] = {}
        self._intervals = 0
        self.workers = self.best = lowest
        self.is_settled = lowest == highest

    @property
    def curve(self) -> tuple[WorkersResult, ...]:
        """The points of all measured numbers of workers."""
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
        """Return the number to measure next; None if nothing is left to learn.

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
        """Return the leader and its most promising rival, the less measured one first.

        Returns [] if no rival can be distinguished from the leader any more.
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
        """Return the fewest workers that are equal to the leader."""
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
