"""The law of a few points."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryprof.growth.law import fit_law

pytestmark = pytest.mark.once

SIZES = (20, 40, 80, 160)


def law(figure: Callable[[float], float], sizes: tuple[int, ...] = SIZES) -> tuple[float, bool]:
    found = fit_law(sizes, [round(figure(size)) for size in sizes])
    return found.exponent, found.has_log


@pytest.mark.parametrize(
    ("figure", "exponent", "has_log"),
    [
        (lambda n: 500, 0, False),
        (lambda n: 500 + n % 3, 0, False),
        (lambda n: 1000 - n, 0, False),
        (lambda n: 40 * log(n), 0, True),
        (lambda n: 100 * n**0.5, 0.5, False),
        (lambda n: n // 7 * 13, 1, False),
        (lambda n: 5 * n * log(n) + 100 * n, 1, True),
        (lambda n: 10 * n**1.5, 1.5, False),
        (lambda n: n * n + 300 * n, 2, False),
        (lambda n: n * n * log(n), 2, True),
        (lambda n: 2 * n**3 + 5 * n * n + 100 * n + 7, 3, False),
    ],
)
def test_the_exponent_is_that_of_the_highest_term(
    figure: Callable[[float], float], exponent: float, has_log: bool
) -> None:
    found, logarithm = law(figure)
    assert found == pytest.approx(exponent, abs=0.05)
    assert logarithm == has_log


@given(
    st.integers(0, 10**6),
    st.integers(1, 1000),
    st.integers(1, 100),
    st.sampled_from([SIZES, (10, 20, 40, 80, 160, 320), (25, 30, 50, 90)]),
)
def test_a_constant_part_drops_out(
    constant: int, slope: int, square: int, sizes: tuple[int, ...]
) -> None:
    rise = slope * (sizes[-1] - sizes[0])
    if rise > 0.02 * (constant + slope * sizes[-1]):
        assert law(lambda n: constant + slope * n, sizes) == (1, False)
    if square * sizes[-1] > slope and rise > 0.02 * constant:
        assert law(lambda n: constant + slope * n + square * n * n, sizes) == (2, False)


@given(st.lists(st.integers(0, 10**12), min_size=4, max_size=4))
def test_any_figures_have_a_law(figures: list[int]) -> None:
    found = fit_law(SIZES, figures)
    assert 0 <= found.exponent <= 4
    assert found.times_as_much(10) == found.times_as_much(10)  # not NaN


def test_a_forecast_continues_the_law() -> None:
    figures = [3 * n * n + 50 * n + 1000 for n in SIZES]
    assert fit_law(SIZES, figures).times_as_much(10) == pytest.approx(
        (3 * 1600**2 + 50 * 1600 + 1000) / figures[-1], rel=1e-6
    )


@pytest.mark.parametrize("sizes", [(1, 2, 3), (1, 1, 1, 1), (0, 1, 2, 3)])
def test_too_few_sizes_have_no_law(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="four different sizes"):
        fit_law(sizes, sizes)
