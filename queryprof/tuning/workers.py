"""Searches for the number of workers at which a program completes most operations.

A search is driven by one figure: the operations completed in an interval (of 2 s, for example)
with the number of workers that it proposes. What starts workers and counts operations is elsewhere.
"""

from __future__ import annotations

from math import isfinite
from statistics import median
from typing import Protocol

from queryprof.tuning.throughput import Point, curve, disagree, is_certainly_lower, variation


class Search(Protocol):
    """Asks for a number of workers, is given the operations of an interval with it, and again."""

    @property
    def workers(self) -> int:
        """The number to use in the next interval."""

    @property
    def best(self) -> int:
        """The number that is best so far; the first one proposed while there is none."""

    @property
    def is_settled(self) -> bool:
        """Whether `workers` is `best` from now on; what is observed then is ignored."""

    def observe(self, operations: float) -> None:
        """The operations completed in an interval with `workers`."""


class SteadySearch:
    """Measures a few numbers of workers, then those around the best, until the best is certain.

    1. Up to eight numbers from `lowest` to `highest`, further apart from each other as they grow,
       are measured on the way up and again on the way down (the highest at the end), so that a
       slow drift of the system changes their order little.
    2. Where two intervals differ by more than intervals vary by, one was a dip: more decide, until
       most are at the upper end, or five have shown that the upper one was the exception.
    3. The numbers half-way from the best to its measured neighbours follow, until none is left.
    4. The best and the number that may yet be better are repeated by turns, until the 95% interval
       of their difference excludes 0 or both have been measured often enough to be called equal;
       after S. Kalyanakrishnan and others, PAC Subset Selection in Stochastic Multi-armed Bandits
       (2012).

    It ends after `MOST_INTERVALS` at the latest. Of equals, the fewest workers are the best.
    """

    MOST_INTERVALS = 40
    GRID = 8
    DOUBTED = 5
    ENOUGH = 6
    """Intervals of each of two numbers after which they are equal, if they are not different."""

    EQUAL = 0.02
    """Below the best by this share, and not certainly: equal."""

    def __init__(self, lowest: int, highest: int) -> None:
        check_bounds(lowest, highest)
        grid = _grid(lowest, highest, self.GRID)
        # The highest comes last: not twice in a row.
        self._planned = [*grid[1:], *reversed(grid[:-1]), highest]
        self._observations: dict[int, list[float]] = {}
        self._intervals = 0
        self.workers = self.best = lowest
        self.is_settled = lowest == highest

    @property
    def curve(self) -> tuple[Point, ...]:
        """What is known of each number of workers that was measured."""
        return curve(self._observations)

    def observe(self, operations: float) -> None:
        check_operations(operations)
        if self.is_settled:
            return
        self._observations.setdefault(self.workers, []).append(operations)
        self._intervals += 1
        points = self.curve
        leader = max(points, key=lambda point: point.operations)
        following = None
        if self._intervals < self.MOST_INTERVALS:
            following = self._next(points, leader)
        self.best = self._fewest(points, leader)
        self.is_settled = following is None
        self.workers = self.best if following is None else following

    def _next(self, points: tuple[Point, ...], leader: Point) -> int | None:
        """The number to measure next, not the same again if there is another: a dip may outlast an
        interval. None if there is nothing left to learn.
        """
        if self._planned:
            return self._planned.pop(0)
        wanted = [
            *self._doubtful(),
            *self._between(points, leader),
            *self._rivals(points, leader),
        ]
        others = [workers for workers in wanted if workers != self.workers]
        return next(iter(others or wanted), None)

    def _doubtful(self) -> list[int]:
        """Numbers that have one interval alone, or most of whose intervals may be dips."""
        varies = variation(self._observations)
        return [
            workers
            for workers, intervals in self._observations.items()
            if len(intervals) == 1
            or (
                varies
                and len(intervals) < self.DOUBTED
                and disagree(intervals, varies.deviation)
                and median(intervals) <= (min(intervals) + max(intervals)) / 2
            )
        ]

    def _between(self, points: tuple[Point, ...], leader: Point) -> list[int]:
        """Half-way from the leader to its neighbours that were measured, where there is room."""
        place = points.index(leader)
        neighbours = points[max(place - 1, 0) : place] + points[place + 1 : place + 2]
        middles = [(leader.workers + neighbour.workers) // 2 for neighbour in neighbours]
        return [middle for middle in middles if middle not in self._observations]

    def _rivals(self, points: tuple[Point, ...], leader: Point) -> list[int]:
        """The leader and its most promising rival, the one that was measured less first; none if no
        rival could still be distinguished from the leader.
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

    def _fewest(self, points: tuple[Point, ...], leader: Point) -> int:
        """The fewest workers that are equal to the leader."""
        least = leader.operations * (1 - self.EQUAL)
        return next(
            point.workers
            for point in points
            if point.operations >= least and not is_certainly_lower(point, leader)
        )


def _grid(lowest: int, highest: int, size: int) -> list[int]:
    """Numbers from `lowest` to `highest`, each the same multiple of the one before if rounded."""
    ratio = (highest / lowest) ** (1 / (size - 1))
    return sorted({round(lowest * ratio**step) for step in range(size)})


def check_bounds(lowest: int, highest: int) -> None:
    """Raises ValueError: there is no number of workers between these."""
    if not 1 <= lowest <= highest:
        raise ValueError(f"workers from {lowest} to {highest}: need 1 <= lowest <= highest")


def check_operations(operations: float) -> None:
    """Raises ValueError: no interval can have so many operations."""
    if not (isfinite(operations) and operations >= 0):
        raise ValueError(f"{operations} operations in an interval: need a number from 0")
