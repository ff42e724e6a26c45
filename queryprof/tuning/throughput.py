"""Throughput at several numbers of workers: means and differences that a dip does not decide.

An interval in which the system itself pauses (a checkpoint, a neighbour on the machine) completes
far fewer operations than others with as many workers. Such an interval counts, but only as if it
were at the edge of what intervals vary by. That is one step, from the median, of the estimate of
P. J. Huber, Robust Estimation of a Location Parameter (1964).

Intervals vary in proportion to their operations; how much is learnt from all numbers of workers
together, so that a few intervals of each are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import NormalDist, fmean, median

from queryprof.tuning.student import t_95

Observations = Mapping[int, Sequence[float]]
"""Operations completed in each interval, by the number of workers."""

EDGE = 2.0
"""Deviations from the median beyond which an interval counts as if it were there."""

MEDIAN_DEVIATION = NormalDist().inv_cdf(0.75)
"""The median of what a normal variable with deviation 1 is away from its mean by: 0.6745."""


@dataclass(frozen=True, slots=True)
class Point:
    """What is known of one number of workers: the mean operations of an interval, half the width
    of their 95% interval (None while nothing was repeated), and the number of intervals.
    """

    workers: int
    operations: float
    half_width: float | None
    intervals: int


@dataclass(frozen=True, slots=True)
class Variation:
    """What intervals with the same number of workers differ by.

    `deviation` is relative to their mean (0.05: 5%); `degrees` of freedom are the repetitions that
    it was learnt from.
    """

    deviation: float
    degrees: int


def variation(observations: Observations) -> Variation | None:
    """From the median difference of intervals that followed each other with as many workers, of
    which a few dips change little; None if no number of workers was observed twice.
    """
    differences = [
        2 * abs(after - before) / (before + after) if before + after else 0.0
        for intervals in observations.values()
        for before, after in pairwise(intervals)
    ]
    if not differences:
        return None
    return Variation(median(differences) / sqrt(2) / MEDIAN_DEVIATION, len(differences))


def mean(intervals: Sequence[float], deviation: float) -> float:
    """The mean of operations, none of which counts as further than the edge from the median."""
    middle = median(intervals)
    edge = EDGE * deviation * middle
    return fmean(min(max(y, middle - edge), middle + edge) for y in intervals)


def point(workers: int, intervals: Sequence[float], varies: Variation | None) -> Point:
    if varies is None:
        return Point(workers, fmean(intervals), None, len(intervals))
    operations = mean(intervals, varies.deviation)
    error = operations * varies.deviation / sqrt(len(intervals))
    return Point(workers, operations, t_95(varies.degrees) * error, len(intervals))


def curve(observations: Observations) -> tuple[Point, ...]:
    """A point for each number of workers, in their order."""
    varies = variation(observations)
    return tuple(point(workers, observations[workers], varies) for workers in sorted(observations))


def is_certainly_lower(lower: Point, higher: Point) -> bool:
    """Whether the 95% interval of the difference of the means excludes 0."""
    if lower.half_width is None or higher.half_width is None:
        return False
    half_width = sqrt(lower.half_width**2 + higher.half_width**2)
    return higher.operations - lower.operations > half_width


def disagree(intervals: Sequence[float], deviation: float) -> bool:
    """Whether intervals with the same number of workers differ by more than intervals vary by:
    beyond three deviations of a difference.
    """
    return max(intervals) - min(intervals) > 3 * sqrt(2) * deviation * median(intervals)
