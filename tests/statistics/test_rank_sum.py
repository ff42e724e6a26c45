"""The rank-sum test: its distribution, and its use."""

from __future__ import annotations

from itertools import combinations
from math import comb, exp, log
from random import Random
from statistics import fmean, variance

import pytest

from queryprof.statistics.rank_sum import MAX_EXACT_PAIRS, rank_sum_p_value


@pytest.mark.parametrize(("size", "others"), [(1, 1), (2, 3), (4, 4), (5, 2), (1, 6)])
def test_it_is_counted(size: int, others: int) -> None:
    """Every set of ranks is equally likely."""
    sums = [sum(some) for some in combinations(range(1, size + others + 1), size)]
    for wanted in range(min(sums), max(sums) + 1):
        expected = sum(one >= wanted for one in sums) / comb(size + others, size)
        assert rank_sum_p_value(wanted, size, others) == pytest.approx(expected)


def test_both_ways_agree_where_they_meet() -> None:
    size, others = 20, 20
    assert size * others == MAX_EXACT_PAIRS
    for rank_sum in range(410, 600, 10):
        exact = rank_sum_p_value(rank_sum, size, others)
        normal = rank_sum_p_value(420 + (rank_sum - 410) * 38.34 / 36.97, size, others + 1)
        assert normal == pytest.approx(exact, abs=0.02)


@pytest.mark.once
@pytest.mark.parametrize(
    ("before", "after", "slow_share", "times"),
    [(8, 200, 0.2, 2), (8, 200, 0.1, 3), (200, 8, 0.8, 2), (8, 8, 0.5, 2), (100, 100, 0.2, 2)],
)
@pytest.mark.parametrize("rounds", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.repeats
def test_equal_versions_on_hosts_of_two_kinds(
    before: int, after: int, slow_share: float, times: float, rounds: int
) -> None:
    """In 19 of 20 comparisons of equal versions, none of 30 statements is reported."""
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from queryprof.fleet.comparison import SLOWER, interval, is_sure

    chosen = Random(0)
    statements, wrong = 30, 0
    for _ in range(rounds):
        speeds = [
            [times if chosen.random() < slow_share else 1.0 for _ in range(count)]
            for count in (before, after)
        ]
        named = False
        for _ in range(statements):
            logs = [[log(one) + chosen.gauss(0, 0.08) for one in side] for side in speeds]
            row = row_of(*logs, log(SLOWER))
            found = interval(row, "time", statements)
            is_slower = found is not None and found.low > SLOWER
            named |= is_slower and is_sure(row, "slower", "time", statements)
        wrong += named
    assert wrong <= rounds / 20


def row_of(before: list[float], after: list[float], limit: float) -> dict[str, float]:
    """Return a row of the question `compare`."""
    shifted = [one - limit for one in after]
    ranks = {one: rank for rank, one in enumerate(sorted([*before, *shifted]), 1)}
    return {
        "hosts_before": len(before),
        "hosts_after": len(after),
        "time_mean_before": fmean(before),
        "time_mean_after": fmean(after),
        "time_variance_before": variance(before),
        "time_variance_after": variance(after),
        "slower_rank_sum": sum(ranks[one] for one in shifted),
    }


def test_a_slower_version_is_seen_on_eight_hosts() -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from queryprof.fleet.comparison import interval, is_sure

    chosen = Random(0)
    before = [chosen.gauss(0, 0.08) for _ in range(8)]
    row = row_of(before, [log(2) + chosen.gauss(0, 0.08) for _ in range(8)], log(1.05))
    found = interval(row, "time", 100)
    assert found
    assert exp(log(found.low)) > 1.05
    assert is_sure(row, "slower", "time", 100)
