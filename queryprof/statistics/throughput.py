"""Compute throughput by number of workers, with means and differences that are robust against dips.

In some intervals, a checkpoint or another program slows the system, and far fewer operations
complete. The mean moves such a value to the edge of the normal variation. This is the first step,
starting at the median, of the estimate in P. J. Huber, Robust Estimation of a Location Parameter
(1964).

Intervals vary in proportion to their operations. The variation is estimated from all numbers of
workers together, so a few intervals for each number are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import NormalDist, fmean, median

from queryprof.statistics.student import t_95

Observations = Mapping[int, Sequence[float]]
"""Operations completed in each interval, by the number of workers."""

EDGE = 2.0
"""Maximum distance from the median, in standard deviations. Values further away are moved to this
distance.
"""

NORMAL_MEDIAN_DEVIATION = NormalDist().inv_cdf(0.75)
"""Median absolute deviation of the standard normal distribution: 0.6745."""


@dataclass(frozen=True, slots=True)
class WorkersResult:
    """The result for one number of workers.

    Attributes:
        operations: mean operations per interval.
        half_width: half of the mean's 95% interval; None without repetitions.
        intervals: number of intervals.
    """

    workers: int
    operations: float
    half_width: float | None
    intervals: int


@dataclass(frozen=True, slots=True)
class Variation:
    """The variation of intervals with the same number of workers.

    Attributes:
        deviation: the standard deviation, relative to the mean (0.05 means 5%).
        degrees: degrees of freedom, the number of repetitions used for the estimate.
    """

    deviation: float
    degrees: int


def estimate_variation(observations: Observations) -> Variation | None:
    """Estimate the variation from the median difference of consecutive intervals.

    The median is robust against a few dips. Returns None if no number of workers was observed
    twice.
    """
    differences = [
        2 * abs(after - before) / (before + after) if before + after else 0.0
        for intervals in observations.values()
        for before, after in pairwise(intervals)
    ]
    if not differences:
        return None
    return Variation(median(differences) / sqrt(2) / NORMAL_MEDIAN_DEVIATION, len(differences))


def winsorized_mean(intervals: Sequence[float], deviation: float) -> float:
    """Return the mean of the operations per interval, with outliers moved to EDGE."""
    middle = median(intervals)
    edge = EDGE * deviation * middle
    return fmean(min(max(y, middle - edge), middle + edge) for y in intervals)


def workers_result(
    workers: int, intervals: Sequence[float], varies: Variation | None
) -> WorkersResult:
    if varies is None:
        return WorkersResult(workers, fmean(intervals), None, len(intervals))
    operations = winsorized_mean(intervals, varies.deviation)
    error = operations * varies.deviation / sqrt(len(intervals))
    return WorkersResult(workers, operations, t_95(varies.degrees) * error, len(intervals))


def throughput_curve(observations: Observations) -> tuple[WorkersResult, ...]:
    """Return the result for each number of workers, in ascending order."""
    varies = estimate_variation(observations)
    return tuple(
        workers_result(workers, observations[workers], varies) for workers in sorted(observations)
    )


def is_certainly_lower(lower: WorkersResult, higher: WorkersResult) -> bool:
    """Return whether the 95% interval of the difference of the means excludes 0."""
    if lower.half_width is None or higher.half_width is None:
        return False
    half_width = sqrt(lower.half_width**2 + higher.half_width**2)
    return higher.operations - lower.operations > half_width


def intervals_disagree(intervals: Sequence[float], deviation: float) -> bool:
    """Return whether the largest and smallest interval differ by more than three standard
    deviations of a difference.
    """
    return max(intervals) - min(intervals) > 3 * sqrt(2) * deviation * median(intervals)
