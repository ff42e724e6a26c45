"""Fit a law to a few measured points: how a figure grows with a size.

VM steps and counts have no noise, so a sum of a few powers fits them almost exactly: a line, a
logarithm, a square, a cube, n log n, or another power. The constant term is ignored. For random or
paged data, no sum fits exactly, and the slope decides: how fast the increase itself increases.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf, log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Term = tuple[float, int]
"""The exponents (p, l) of a term size**p * log(size)**l."""

ONE: Term = (0.0, 0)
LINE, LOGARITHM = (ONE, (1.0, 0)), (ONE, (0.0, 1))
CURVES: tuple[tuple[Term, ...], ...] = (
    (ONE, (1.0, 0), (2.0, 0)),
    (ONE, (1.0, 0), (1.0, 1)),
    (ONE, (1.0, 0), (3.0, 0)),
    (ONE, (2.0, 0), (2.0, 1)),
    (ONE, (2.0, 0), (3.0, 0)),
)
POWERS = tuple((ONE, (power / 100, 0)) for power in range(20, 401))
ODD_POWERS = tuple(one for one in POWERS if not 0.8 < one[1][0] < 1.25)
"""Powers that a line with steps cannot be mistaken for."""

CONSTANT_SHARE, CONSTANT = 0.02, 2
"""A figure is constant if it varies by at most this share of its maximum, or by at most this
number. A query for a page of 20 rows takes a few VM steps more or fewer, depending on the rows.
"""

LEVELS_OFF = 0.75
"""A figure levels off, for example at the size of a page, if its last increase per doubling of the
size is below this share of its largest earlier increase. For a logarithm, this ratio is 1.
"""

FITS = 0.005
"""A sum fits if its distance from every point is at most this share of the figure's range."""

CERTAIN, CERTAIN_RANGE, ROUNDING = 1e-4, 100, 5e-4
"""A fit is certain if the range is at least CERTAIN_RANGE and the sum misses every point by at most
the share CERTAIN of the range. Rounded figures may miss by more: by 1, or by the share ROUNDING of
the range if that is smaller.
"""

MAX_SLOPE_DIFFERENCE = 0.35
"""A sum that fits, but not with certainty, is accepted if its power differs from the slope by at
most this.
"""

STEEPEST_LINE, FLATTEST_LINE = 1.35, 0.6
"""A slope between these limits may be a line with noise, from random rows or from pages."""

MIN_RISE_PER_FALL = 3
"""A figure that sometimes falls still grows if its total rise exceeds this many times its largest
fall.
"""

ODD_POWER_PENALTY = 3
"""A power outside CURVES is chosen only if the fit of the best curve misses by more than
1 + ODD_POWER_PENALTY times as much (`miss`).
"""

MIN_LEADING_SHARE = 0.1
"""The highest term must rise by at least this share of the range. Otherwise the term only fits
noise.
"""

MIN_POINTS = 4


@dataclass(frozen=True, slots=True)
class Law:
    """How a figure y grows with a size x: y = sum of coefficient * x**power * log(x)**logs.

    Attributes:
        exponent: the power of the highest term; 0 for a constant figure or a logarithm.
        has_log: whether the highest term has a logarithm.
        terms: (coefficient, power, logs), highest last.
        last: the largest measured size and its figure.
        slope: the smallest exponent estimated from two neighboring increases.
        is_certain: whether the terms fit too well for chance (see CERTAIN).
    """

    exponent: float
    has_log: bool = False
    terms: tuple[tuple[float, float, int], ...] = ()
    last: tuple[float, float] = (1.0, 0.0)
    slope: float = 0.0
    is_certain: bool = True

    @property
    def is_constant(self) -> bool:
        """Whether the figure does not grow."""
        return not self.exponent and not self.has_log

    def times_as_much(self, factor: float) -> float:
        """Extrapolate to `factor` times the largest size. Return the ratio to the last measured
        figure.
        """
        size, figure = self.last
        return self._value(size * factor) / figure if figure and self.terms else 1.0

    def _value(self, size: float) -> float:
        return sum(c * _at((power, logs), size) for c, power, logs in self.terms)


def fit_law(sizes: Sequence[float], figures: Sequence[float]) -> Law:
    """Return the law of a figure that was measured at increasing sizes.

    Raises:
        ValueError: fewer than four different sizes above 0.
    """
    points = sorted(dict(zip(sizes, figures, strict=True)).items())
    if len(points) < MIN_POINTS or points[0][0] <= 0:
        raise ValueError("a law needs four different sizes above 0")
    x, y = [one[0] for one in points], [float(one[1]) for one in points]
    spread = max(y) - min(y)
    if spread <= max(CONSTANT, CONSTANT_SHARE * max(y)) or y[-1] <= y[0] or _levels_off(x, y):
        return Law(0.0, last=points[-1])
    slope, least = _slopes(x, y)
    simple = filter(None, (_fit(basis, x, y) for basis in (LINE, LOGARITHM)))
    best = min(simple, key=lambda one: one.miss)
    if best.miss > FITS * spread:
        fits = filter(None, (_fit(basis, x, y) for basis in (*CURVES, *ODD_POWERS)))
        rising = [one for one in fits if one.leads(x, MIN_LEADING_SHARE * spread)]
        best = min(
            rising, key=lambda one: one.miss * (1 + ODD_POWER_PENALTY * one.is_odd), default=best
        )
        is_alike = best.is_certain(spread) or abs(best.power - slope) <= MAX_SLOPE_DIFFERENCE
        if best.miss > FITS * spread or not is_alike:
            is_line = FLATTEST_LINE <= slope <= STEEPEST_LINE
            power = 1.0 if is_line else min(max(round(slope, 2), 0.01), 4.0)
            best = _fit((ONE, (power, 0)), x, y) or best
    terms = tuple((c, *term) for c, term in zip(best.coefficients, best.basis, strict=True))
    certain = best.is_certain(spread)
    return Law(best.power, bool(best.basis[-1][1]), terms, points[-1], least, certain)


def _levels_off(x: Sequence[float], y: Sequence[float]) -> bool:
    """Return whether a figure stops growing (see LEVELS_OFF)."""
    logs = [log(one) for one in x]
    rises = [(b - a) / (d - c) for (a, b), (c, d) in zip(pairwise(y), pairwise(logs), strict=True)]
    return rises[-1] < LEVELS_OFF * max(rises[:-1])


def _slopes(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return the exponent estimated from the first and last increase, and the smallest exponent
    estimated from two neighboring increases. In random data, neighboring increases are rarely both
    steep.
    """
    rises = [
        ((c + d) / 2, (b - a) / (d - c))
        for (a, b), (c, d) in zip(pairwise(y), pairwise(x), strict=True)
    ]
    if any(rise <= 0 for _, rise in rises):  # the figures are too noisy to fit more than a line
        drop = max(a - b for a, b in pairwise(y))
        found = 1.0 if y[-1] - y[0] > MIN_RISE_PER_FALL * drop else 0.0
        return found, found
    least = min(_exponent(*pair) for pair in pairwise(rises))
    return _exponent(rises[0], rises[-1]), least


def _exponent(first: tuple[float, float], last: tuple[float, float]) -> float:
    return 1 + log(last[1] / first[1]) / log(last[0] / first[0])


@dataclass(frozen=True, slots=True)
class _Fit:
    """A sum of terms, fitted by least squares.

    Attributes:
        miss: the largest distance between the sum and a measured figure.
    """

    basis: tuple[Term, ...]
    coefficients: tuple[float, ...]
    miss: float

    @property
    def is_odd(self) -> bool:
        """Whether the sum is not one of CURVES."""
        return self.basis not in CURVES

    def leads(self, x: Sequence[float], least: float) -> bool:
        """Return whether the highest term rises by at least `least` over the sizes `x`."""
        return self.coefficients[-1] * (_at(self.basis[-1], x[-1]) - _at(self.basis[-1], x[0])) >= (
            least
        )

    @property
    def power(self) -> float:
        """The power of the highest term."""
        return self.basis[-1][0]

    def is_certain(self, spread: float) -> bool:
        """Return whether the fit is too good for chance."""
        rounding = min(1.0, ROUNDING * spread)
        return spread >= CERTAIN_RANGE and self.miss <= max(rounding, CERTAIN * spread)


def _fit(basis: tuple[Term, ...], x: Sequence[float], y: Sequence[float]) -> _Fit | None:
    """Fit a sum by least squares. Each term is scaled to 1 at the largest size."""
    scales = [_at(term, x[-1]) or 1.0 for term in basis]
    rows = [
        [_at(term, one) / scale for term, scale in zip(basis, scales, strict=True)] for one in x
    ]
    products = [
        [_dot(column, other) for other in zip(*rows, strict=True)] + [_dot(column, y)]
        for column in zip(*rows, strict=True)
    ]
    solved = _solve(products)
    if solved is None:
        return None
    miss = max(abs(_dot(row, solved) - one) for row, one in zip(rows, y, strict=True))
    coefficients = (c / scale for c, scale in zip(solved, scales, strict=True))
    return _Fit(basis, tuple(coefficients), miss)


def _at(term: Term, size: float) -> float:
    power, logs = term
    return float(size**power * log(size) ** logs)


def _dot(some: Iterable[float], others: Iterable[float]) -> float:
    return sum(a * b for a, b in zip(some, others, strict=True))


def _solve(rows: list[list[float]]) -> list[float] | None:
    """Solve linear equations by elimination; None if they have no single solution."""
    for at in range(len(rows)):
        pivot = max(range(at, len(rows)), key=lambda one: abs(rows[one][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        if abs(rows[at][at]) < 1e-12:
            return None
        for below in range(at + 1, len(rows)):
            factor = rows[below][at] / rows[at][at]
            rows[below] = [b - factor * a for a, b in zip(rows[at], rows[below], strict=True)]
    found = [0.0] * len(rows)
    for at in reversed(range(len(rows))):
        known = _dot(rows[at][at + 1 : -1], found[at + 1 :])
        found[at] = (rows[at][-1] - known) / rows[at][at]
    return found if max(map(abs, found), default=inf) < inf else None
