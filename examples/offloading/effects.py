"""Means with 95% intervals, and the effects in a 2^k factorial experiment with r replications.

After R. Jain, The Art of Computer Systems Performance Analysis (Wiley 1991): intervals of means,
chapter 13; effects, the variation that each explains and their intervals, chapter 18; the
multiplicative model on logarithms, section 18.8. Only computes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

# fmt: off
T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)
# fmt: on
"""0.975 quantiles of Student's t for 1 to 30 degrees of freedom: NIST/SEMATECH e-Handbook of
Statistical Methods, section 1.3.6.7.2, as are the next."""

T_975_ABOVE = ((120, 1.980), (60, 2.000), (40, 2.021), (30, 2.042))
"""For more degrees of freedom, that of the next smaller number, which is too wide rather than too
narrow."""

Configuration = frozenset[str]


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95% interval; NaN limits where one run leaves the interval unknown."""

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Of an interval that is symmetric about the mean."""
        return (self.high - self.low) / 2

    def changes(self) -> Estimate:
        """An estimate of a logarithm of a ratio as one of a change in percent."""
        return Estimate(*(math.expm1(x) * 100 for x in (self.mean, self.low, self.high)))


@dataclass(frozen=True)
class Effect:
    """A factor's or an interaction's effect."""

    factors: tuple[str, ...]
    log_ratio: Estimate
    """By what the response is multiplied from the low level to the high one, as a logarithm."""

    variation: float
    """The share of all variation that it explains, 0 to 1."""


@dataclass(frozen=True)
class Analysis:
    """All effects, and the share of variation that none of them explains."""

    effects: tuple[Effect, ...]
    error: float


def t_975(degrees: int) -> float:
    """The 0.975 quantile of Student's t."""
    if degrees < 1:
        return math.nan
    if degrees <= len(T_975):
        return T_975[degrees - 1]
    return next(t for least, t in T_975_ABOVE if degrees >= least)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean over rounds."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Estimate(mean, math.nan, math.nan)
    half = t_975(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


def change(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """The change in percent from base to values, paired by round, as a geometric mean."""
    return estimate([math.log(v / b) for v, b in zip(values, base, strict=True)]).changes()


def sign(configuration: Configuration, factors: Sequence[str]) -> int:
    """The entry of the sign table: the product of the factors' levels, each -1 or +1."""
    return math.prod(1 if factor in configuration else -1 for factor in factors)


def analyze(responses: Mapping[Configuration, Sequence[float]], factors: Sequence[str]) -> Analysis:
    """The effects on the logarithm of the response, equally many for every configuration.

    A configuration is the set of factors at their high level. The model has no term for rounds;
    what differs between rounds is in the error.
    """
    logs = {key: [math.log(value) for value in values] for key, values in responses.items()}
    means = {key: statistics.fmean(values) for key, values in logs.items()}
    replications = len(next(iter(logs.values())))
    runs = len(logs) * replications
    squared_error = sum((y - means[key]) ** 2 for key, values in logs.items() for y in values)
    degrees = len(logs) * (replications - 1)
    deviation = math.sqrt(squared_error / degrees / runs) if degrees else math.nan
    half = t_975(degrees) * deviation
    terms = [term for n in range(1, len(factors) + 1) for term in combinations(factors, n)]
    q = {
        term: sum(sign(key, term) * mean for key, mean in means.items()) / len(logs)
        for term in terms
    }
    variation = sum(runs * value**2 for value in q.values()) + squared_error
    effects = [
        Effect(
            factors=term,
            log_ratio=Estimate(2 * value, 2 * (value - half), 2 * (value + half)),
            variation=runs * value**2 / variation,
        )
        for term, value in q.items()
    ]
    return Analysis(tuple(effects), squared_error / variation)
