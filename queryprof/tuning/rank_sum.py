"""The rank-sum test: whether one sample's values are larger than another's, whatever their
distributions, if these are equal otherwise (H. B. Mann and D. R. Whitney, "On a test of whether one
of two random variables is stochastically larger than the other", Annals of Mathematical Statistics
18, 1947).
"""

from __future__ import annotations

from functools import cache
from math import comb, sqrt
from statistics import NormalDist

LARGEST_EXACT = 400
"""Pairs of values up to which the distribution is counted; beyond, it is the normal one, whose
tails are heavier than its own."""


def rank_sum_p(rank_sum: float, size: int, others: int) -> float:
    """The probability that the ranks of `size` values among these and `others` add up to so much or
    more, if all are from one distribution.

    Args:
        rank_sum: of the ranks from 1 on; equal values have the mean of theirs.
    """
    pairs = rank_sum - size * (size + 1) / 2  # in which the value is larger than the other's
    if size * others <= LARGEST_EXACT:
        counts = _counts(size, others)
        return sum(counts[max(0, round(pairs + 1e-9)) :]) / comb(size + others, size)
    mean = size * others / 2
    deviation = sqrt(size * others * (size + others + 1) / 12)
    return 1 - NormalDist().cdf((pairs - mean - 0.5) / deviation)


@cache
def _counts(size: int, others: int) -> tuple[int, ...]:
    """In how many orders of the values so many pairs are so (Mann and Whitney's recurrence)."""
    if not size or not others:
        return (1,)
    with_largest = (0,) * others + _counts(size - 1, others)
    without = _counts(size, others - 1)
    length = size * others + 1
    return tuple(
        (with_largest[at] if at < len(with_largest) else 0)
        + (without[at] if at < len(without) else 0)
        for at in range(length)
    )
