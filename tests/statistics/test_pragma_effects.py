"""The advice of experiments with pragmas: none that risks data, and none by chance."""

from __future__ import annotations

import io
from itertools import product

import pytest

from queryprof.report.terminal.tuning import print_pragmas
from queryprof.statistics.factorial import Trial, compute_effects
from queryprof.statistics.pragma_effects import (
    RISKS,
    PragmaCombination,
    PragmaExperiment,
    PragmaFactor,
    pragmas_of,
)

pytestmark = pytest.mark.once

FACTORS = (
    PragmaFactor("synchronous", ("full", "normal")),
    PragmaFactor("journal_mode", ("delete", "wal")),
)


def message(times_s: dict[tuple[int, int], tuple[float, float]], *factors: PragmaFactor) -> str:
    """Return the output if each combination took this long, twice."""
    trials = {
        Trial(levels, number): seconds
        for levels, both in times_s.items()
        for number, seconds in enumerate(both, 1)
    }
    combinations = []
    for levels, both in times_s.items():
        pragmas = pragmas_of(factors, Trial(levels, 1))
        risks = tuple(RISKS[one] for one in pragmas if one in RISKS)
        combinations.append(PragmaCombination(pragmas, both, risks))
    effects = compute_effects([factor.name for factor in factors], trials, multiplicative=True)
    found = PragmaExperiment(factors, effects, tuple(sorted(combinations, key=lambda c: c.mean_s)))
    text = io.StringIO()
    print_pragmas(found, text, 80)
    return " ".join(text.getvalue().split())


LEVELS = tuple(product((-1, 1), repeat=2))


def test_what_may_lose_commits_is_not_advised() -> None:
    """The fastest is synchronous = normal with a log, which loses commits in a power failure."""
    times_s = {levels: (4.0 / (3 + sum(levels)), 4.1 / (3 + sum(levels))) for levels in LEVELS}
    text = message(times_s, *FACTORS)
    safe, _, fastest = text.partition("Fastest without risk of data loss")[2].partition(
        "Fastest, but may lose data"
    )
    assert "synchronous = full, journal_mode = wal" in safe
    assert "synchronous = normal, journal_mode = wal" in fastest
    assert "may lose the last commits" in fastest


def test_where_all_may_lose_something_none_is_called_safe() -> None:
    times_s = {levels: (4.0 / (3 + sum(levels)), 4.1 / (3 + sum(levels))) for levels in LEVELS}
    text = message(times_s, PragmaFactor("synchronous", ("normal", "off")), FACTORS[1])
    assert "loses nothing" not in text
    assert "but may lose data" in text


def test_chance_is_no_advice() -> None:
    times_s = dict(zip(LEVELS, ((1.0, 1.3), (1.2, 1.1), (1.3, 1.0), (1.1, 1.2)), strict=True))
    text = message(times_s, *FACTORS)
    assert "may be chance" in text
    assert "No pragma makes a significant difference" in text
    assert "Fastest" not in text
