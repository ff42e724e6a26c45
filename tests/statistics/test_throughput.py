"""A dip does not decide means and differences of throughput."""

from __future__ import annotations

import random

import pytest

from queryprof.statistics.throughput import (
    Variation,
    estimate_variation,
    intervals_disagree,
    is_certainly_lower,
    throughput_curve,
    winsorized_mean,
)

pytestmark = pytest.mark.once


def test_the_variation_is_relative_and_of_all_numbers_of_workers() -> None:
    draw = random.Random(1)
    observed = {n: [draw.gauss(1000 * n, 50 * n) for _ in range(50)] for n in range(1, 21)}
    found = estimate_variation(observed)
    assert found is not None
    assert found.deviation == pytest.approx(0.05, rel=0.1)
    assert found.degrees == 49 * 20


def test_dips_change_the_variation_little() -> None:
    draw = random.Random(2)
    observed = {1: [draw.gauss(100, 5) * (0.5 if i % 10 == 5 else 1) for i in range(1000)]}
    found = estimate_variation(observed)
    assert found is not None
    assert 0.05 < found.deviation < 0.075


def test_without_a_repetition_the_variation_is_unknown() -> None:
    assert estimate_variation({1: [10], 2: [20]}) is None
    assert estimate_variation({1: [0, 0]}) == Variation(0, 1)


def test_a_dip_counts_as_if_it_were_at_the_edge() -> None:
    assert winsorized_mean([100, 40, 100], deviation=0.03) == pytest.approx(98)
    assert winsorized_mean([99, 101, 100], deviation=0.03) == pytest.approx(100)


def test_intervals_disagree_beyond_what_they_vary_by() -> None:
    """The limit is three deviations of a difference: 3 * sqrt(2) * 5%, or 21%."""
    assert not intervals_disagree([90, 110], deviation=0.05)
    assert intervals_disagree([89, 111], deviation=0.05)


def test_a_difference_is_certain_if_its_interval_excludes_nothing() -> None:
    low, high, near = throughput_curve({1: [80, 81, 79], 2: [100, 102, 98], 3: [101, 99, 103]})
    assert is_certainly_lower(low, high)
    assert not is_certainly_lower(high, low)
    assert not is_certainly_lower(high, near)
    unknown, other = throughput_curve({1: [1], 2: [100]})
    assert not is_certainly_lower(unknown, other)


def test_equal_means_differ_in_5_of_100_experiments() -> None:
    """They are equally often in each direction. The variation is estimated from few intervals."""
    lower = 0
    for seed in range(1000):
        draw = random.Random(seed)
        one, two, *_ = throughput_curve(
            {n: [draw.gauss(100, 5) for _ in range(4)] for n in range(1, 8)}
        )
        lower += is_certainly_lower(one, two) or is_certainly_lower(two, one)
    assert lower / 1000 == pytest.approx(0.05, abs=0.03)
