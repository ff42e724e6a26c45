"""Quantiles of Student's t distribution equal those of the tables."""

from __future__ import annotations

from math import inf, nan

import pytest

from queryprof.statistics.student import incomplete_beta, t_95

pytestmark = pytest.mark.once

TABLE = {
    1: 12.7062047,
    2: 4.3026527,
    3: 3.1824463,
    4: 2.7764451,
    5: 2.5705818,
    8: 2.3060041,
    10: 2.2281389,
    30: 2.0422725,
    100: 1.9839715,
    1000: 1.9623391,
    inf: 1.9599640,
}


@pytest.mark.parametrize("degrees", TABLE)
def test_the_quantiles_are_those_of_the_tables(degrees: float) -> None:
    assert t_95(degrees) == pytest.approx(TABLE[degrees], abs=1e-6)


def test_two_degrees_have_a_closed_form() -> None:
    """P(|T| <= t) = t / sqrt(2 + t²)."""
    t = t_95(2)
    assert t / (2 + t * t) ** 0.5 == pytest.approx(0.95, abs=1e-10)


def test_more_degrees_make_intervals_narrower() -> None:
    """This includes the point where the series replaces the beta function."""
    degrees = [1, 1.5, 2, 2.5, 7, 50, 999, 9_990, 9_999.9, 10_000, 10_010, 1e9, inf]
    quantiles = [t_95(d) for d in degrees]
    assert quantiles == sorted(quantiles, reverse=True)
    assert t_95(9_999.999) == pytest.approx(t_95(10_000), abs=1e-8)


def test_the_beta_function_has_known_values() -> None:
    assert incomplete_beta(0, 2, 3) == 0
    assert incomplete_beta(1, 2, 3) == 1
    assert incomplete_beta(0.3, 1, 1) == pytest.approx(0.3)
    # I(x; 2, 3) = 6x² - 8x³ + 3x⁴
    assert incomplete_beta(0.25, 2, 3) == pytest.approx(0.26171875)
    assert incomplete_beta(0.9, 2, 3) == pytest.approx(0.9963)


@pytest.mark.parametrize("degrees", [0, -1, 0.5, nan])
def test_no_degrees_are_refused(degrees: float) -> None:
    with pytest.raises(ValueError, match="needs at least 1"):
        t_95(degrees)
