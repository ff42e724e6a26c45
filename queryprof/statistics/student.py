"""Quantiles of Student's t distribution, for 95% intervals of the mean of a few observations.

P(|T| > t) with v degrees of freedom is the regularised incomplete beta function I(x; v/2, 1/2) at x
= v / (v + t²): M. Abramowitz and I. Stegun, Handbook of Mathematical Functions (1964), 26.5.27 and
26.7.1. The function is computed with the continued fraction of the NIST Digital Library of
Mathematical Functions, 8.17.22.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import exp, lgamma, log, log1p, sqrt
from statistics import NormalDist, fmean, stdev

CONFIDENCE = 0.95
MAX_OF_ONE = 13.0
"""A value above the quantile for one degree of freedom (12.7062), which is the largest quantile."""

MANY_DEGREES = 10_000
"""For this many degrees or more, a series is used: two terms are exact to 1e-9, whereas the beta
function loses digits.
"""


def t_95(degrees: float) -> float:
    """Return the t with P(|T| <= t) = 95%, correct to 1e-6.

    Args:
        degrees: degrees of freedom; need not be whole and may be infinite.

    Raises:
        ValueError: `degrees` is below 1.
    """
    return t_quantile(degrees, CONFIDENCE)


@cache
def t_quantile(degrees: float, confidence: float) -> float:
    """Return the t with P(|T| <= t) = `confidence`. Precision and errors are as in t_95."""
    if not degrees >= 1:
        raise ValueError(f"{degrees} degrees of freedom: an interval needs at least 1")
    if degrees >= MANY_DEGREES:
        return _t_by_series(degrees, confidence)
    low, high = 0.0, MAX_OF_ONE
    while _two_sided_tail(high, degrees) > 1 - confidence:
        high *= 2
    while high - low > 1e-10 * max(1.0, high):
        middle = (low + high) / 2
        if _two_sided_tail(middle, degrees) > 1 - confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_by_series(degrees: float, confidence: float) -> float:
    """Abramowitz and Stegun, 26.7.5: powers of 1 / degrees around the normal quantile."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees / degrees


def _two_sided_tail(t: float, degrees: float) -> float:
    """Return P(|T| > t)."""
    return incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I(x; a, b), for 0 <= x <= 1 and a, b > 0."""
    if x in (0, 1):
        return float(x)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only for smaller x
        return 1 - incomplete_beta(1 - x, b, a)
    front = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)) / a
    return front / _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Compute 1 + d1 / (1 + d2 / (1 + ...)) of 8.17.22, by W. J. Lentz's method (1976).

    The method converges in about sqrt(max(a, b)) steps.
    """
    value = upper = 1.0
    lower = 0.0
    step = 0
    change = 0.0
    while abs(change - 1) > 1e-15 and step < 1000:
        step += 1
        half = step // 2
        if step % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        lower = 1 / (1 + term * lower)
        upper = 1 + term / upper
        change = upper * lower
        value *= change
    return value


def mean_with_95_interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and half the width of its 95% interval. The half width is None for a single
    observation.
    """
    if len(values) < 2:
        return fmean(values), None
    return fmean(values), t_95(len(values) - 1) * stdev(values) / sqrt(len(values))
