"""Means and changes with 95% intervals, and the effects of a 2^3 design.

queryprof computes the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queryprof.statistics.factorial import Effects, Trial, compute_effects
from queryprof.statistics.student import mean_with_95_interval

Configuration = frozenset[str]


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95% interval. After only one run, the interval's limits are NaN."""

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval, if it is symmetric about the mean."""
        return (self.high - self.low) / 2


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean over the rounds."""
    mean, half_width = mean_with_95_interval(values)
    half = math.nan if half_width is None else half_width
    return Estimate(mean, mean - half, mean + half)


def change(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """Return the change from base to values in percent, as the geometric mean over the rounds."""
    logs = estimate([math.log(v / b) for v, b in zip(values, base, strict=True)])
    return Estimate(*(math.expm1(x) * 100 for x in (logs.mean, logs.low, logs.high)))


def effects_of(
    responses: Mapping[Configuration, Sequence[float]], factors: Sequence[str]
) -> Effects:
    """Return the multiplicative effects on the response.

    A configuration is the set of factors at their high level.
    """
    results = {
        Trial(tuple(1 if factor in off else -1 for factor in factors), number): value
        for off, values in responses.items()
        for number, value in enumerate(values, 1)
    }
    return compute_effects(factors, results, multiplicative=True)
