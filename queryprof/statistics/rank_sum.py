"""The rank-sum test: whether the values of one sample are larger than another sample's.

The test only assumes that the two distributions are equal if there is no difference (H. B. Mann and
D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the
other", Annals of Mathematical Statistics 18, 1947).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb, sqrt
from statistics import NormalDist

MAX_EXACT_PAIRS = 400
"""Maximum number of value pairs for exact counting. For more pairs, a normal approximation is used.
Its tails are heavier.
"""


def rank_sum_p_value(rank_sum: float, size: int, others: int) -> float:
    """Return the probability of a rank sum of at least `rank_sum` if the two samples do not differ.

    The sum is over `size` values, ranked together with `others` values from the same distribution.

    Args:
        rank_sum: ranks count from 1; equal values have the mean of their ranks.
    """
    # number of pairs in which the first sample's value is larger
    pairs = rank_sum - size * (size + 1) / 2
    if size * others <= MAX_EXACT_PAIRS:
        counts = _count_orders(size, others)
        return sum(counts[max(0, round(pairs + 1e-9)) :]) / comb(size + others, size)
    mean = size * others / 2
    deviation = sqrt(size * others * (size + others + 1) / 12)
    return 1 - NormalDist().cdf((pairs - mean - 0.5) / deviation)


def rank_higher_p_value(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the probability that `values` rank this high above `others` by luck."""
    ordered = sorted((*values, *others))
    # Equal values share the mean of their ranks.
    ranks = (ordered.index(one) + (ordered.count(one) + 1) / 2 for one in values)
    return rank_sum_p_value(sum(ranks), len(values), len(others))


@cache
def _count_orders(size: int, others: int) -> tuple[int, ...]:
    """Count the orders of `size` and `others` values. Index i has the number of orders with i pairs
    in which the first sample's value is larger (Mann and Whitney's recurrence).
    """
    if not size or not others:
        return (1,)
    with_largest = (0,) * others + _count_orders(size - 1, others)
    without = _count_orders(size, others - 1)
    length = size * others + 1
    return tuple(
        (with_largest[at] if at < len(with_largest) else 0)
        + (without[at] if at < len(without) else 0)
        for at in range(length)
    )
