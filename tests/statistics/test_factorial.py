"""The effects of factors equal those of the book's example, and those from which responses were
computed.
"""

from __future__ import annotations

import random
from itertools import combinations
from math import exp, inf, nan, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES
from queryprof.statistics.factorial import Effects, Trial, compute_effects, design_trials

pytestmark = pytest.mark.once

NAMES = "ABCDEF"
Cells = dict[tuple[int, ...], tuple[float, ...]]
"""The responses to each combination of levels."""

EXAMPLE: Cells = {
    (-1, -1): (15, 18, 12),
    (1, -1): (45, 48, 51),
    (-1, 1): (25, 28, 19),
    (1, 1): (75, 75, 81),
}
"""Jain, example 18.1."""


def trials(cells: Cells) -> dict[Trial, float]:
    return {
        Trial(levels, r): y
        for levels, responses in cells.items()
        for r, y in enumerate(responses, start=1)
    }


def test_the_worked_example() -> None:
    effects = compute_effects(["A", "B"], trials(EXAMPLE))
    assert (effects.mean, effects.replications, effects.error_degrees) == (41, 3, 8)
    assert [(e.name, e.effect, e.sum_of_squares) for e in effects.effects] == [
        ("A", 21.5, 5547),
        ("B", 9.5, 1083),
        ("A × B", 5, 300),
    ]
    assert effects.error_sum_of_squares == 102
    assert effects.total_sum_of_squares == 7032
    assert [e.share for e in effects.effects] == pytest.approx([0.7888, 0.1540, 0.0427], abs=5e-5)
    assert effects.error_share == pytest.approx(0.0145, abs=5e-5)


def test_the_intervals_of_the_worked_example() -> None:
    """The errors' deviation is sqrt(102 / 8) = 3.571, that of effects 3.571 / sqrt(12) = 1.031."""
    effects = compute_effects(["A", "B"], trials(EXAMPLE))
    assert effects.standard_error == pytest.approx(1.0308, abs=5e-5)
    width = 2.3060041 * (102 / 8 / 12) ** 0.5
    assert effects["A"].interval == pytest.approx((21.5 - width, 21.5 + width))
    assert effects["B", "A"].interval == pytest.approx((5 - width, 5 + width))
    assert effects.mean_interval == pytest.approx((41 - width, 41 + width))
    assert all(effects.is_certain(effect) for effect in effects.effects)


def test_without_replications_there_are_no_intervals() -> None:
    """Jain, example 17.1: 76% and 19% and 5% of the variation."""
    cells: Cells = {(-1, -1): (15,), (1, -1): (45,), (-1, 1): (25,), (1, 1): (75,)}
    effects = compute_effects(["A", "B"], trials(cells))
    assert (effects.mean, [e.effect for e in effects.effects]) == (40, [20, 10, 5])
    assert [round(e.share, 2) for e in effects.effects] == [0.76, 0.19, 0.05]
    assert {e.interval for e in effects.effects} == {None}
    assert (effects.mean_interval, effects.standard_error, effects.error_share) == (None, None, 0)
    assert not effects.is_certain(effects["A"])


def test_the_multiplicative_model_of_factors() -> None:
    """A multiplies by 2 * 2 from low to high and B by 3 * 3; in the additive model they
    interact.
    """
    cells: Cells = {(-1, -1): (10, 10), (1, -1): (40, 40), (-1, 1): (90, 90), (1, 1): (360, 360)}
    effects = compute_effects(["A", "B"], trials(cells), multiplicative=True)
    assert effects.mean == pytest.approx(60)
    assert [e.effect for e in effects.effects] == pytest.approx([2, 3, 1])
    assert effects["A"].interval == pytest.approx((2, 2))
    assert effects["A", "B"].share == pytest.approx(0)
    assert compute_effects(["A", "B"], trials(cells))["A", "B"].share > 0.1


def test_equal_responses_have_no_variation() -> None:
    effects = compute_effects(["A"], dict.fromkeys(design_trials(["A"], 3, seed=1), 0.1))
    assert effects.mean == 0.1
    assert (effects["A"].effect, effects["A"].share, effects.error_share) == (0, 0, 0)
    assert not effects.is_certain(effects["A"])


def test_a_design_has_every_trial_once_in_a_random_order() -> None:
    run = design_trials(list("ABC"), 4, seed=7)
    assert len(run) == len(set(run)) == 32
    assert [trial.replication for trial in run] == [r for r in (1, 2, 3, 4) for _ in range(8)]
    orders = {tuple(t.levels for t in run[start : start + 8]) for start in (0, 8, 16, 24)}
    assert len(orders) == 4
    assert run == design_trials(list("ABC"), 4, seed=7) != design_trials(list("ABC"), 4, seed=8)


@st.composite
def models(draw: st.DrawFn) -> tuple[list[str], dict[tuple[int, ...], float], int]:
    """Factors, the effect of each combination of them (by number; of none: the mean), and
    replications.
    """
    k = draw(st.integers(1, 6))
    q = st.integers(-1000, 1000).map(lambda n: n / 8)
    chosen = [c for order in range(k + 1) for c in combinations(range(k), order)]
    return list(NAMES[:k]), {c: draw(q) for c in chosen}, draw(st.integers(1, 3))


def noiseless(model: dict[tuple[int, ...], float], trial: Trial) -> float:
    return sum(q * prod(trial.levels[i] for i in chosen) for chosen, q in model.items())


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(models())
def test_the_additive_model_is_recovered(
    drawn: tuple[list[str], dict[tuple[int, ...], float], int],
) -> None:
    factors, model, replications = drawn
    results = {t: noiseless(model, t) for t in design_trials(factors, replications, seed=1)}
    effects = compute_effects(factors, results)
    assert effects.mean == pytest.approx(model.pop(()), abs=1e-9)
    assert [e.effect for e in effects.effects] == pytest.approx(list(model.values()), abs=1e-9)
    assert effects.error_sum_of_squares == pytest.approx(0, abs=1e-9)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(models())
def test_the_multiplicative_model_is_recovered(
    drawn: tuple[list[str], dict[tuple[int, ...], float], int],
) -> None:
    factors, model, replications = drawn
    model = {chosen: q / 1000 for chosen, q in model.items()}
    results = {t: exp(noiseless(model, t)) for t in design_trials(factors, replications, seed=1)}
    effects = compute_effects(factors, results, multiplicative=True)
    assert effects.mean == pytest.approx(exp(model.pop(())))
    assert [e.effect for e in effects.effects] == pytest.approx([exp(q) for q in model.values()])


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 2**32), st.booleans())
def test_shares_add_up_to_the_whole(k: int, replications: int, seed: int, logs: bool) -> None:
    """The sums of squares add up to the variation around the mean."""
    draw = random.Random(seed)
    factors = list(NAMES[:k])
    results = {t: draw.lognormvariate(3, 1) for t in design_trials(factors, replications, seed)}
    effects = compute_effects(factors, results, multiplicative=logs)
    assert sum(e.share for e in effects.effects) + effects.error_share == pytest.approx(1)
    if not logs:
        variation = sum((y - effects.mean) ** 2 for y in results.values())
        assert effects.total_sum_of_squares == pytest.approx(variation)


def test_intervals_cover_the_effects_in_95_of_100_experiments() -> None:
    model = {(): 100.0, (0,): 8.0, (1,): 0.0, (0, 1): -3.0}
    covered = dict.fromkeys(model, 0)
    for seed in range(400):
        draw = random.Random(seed)
        run = design_trials(["A", "B"], 3, seed)
        effects = compute_effects(["A", "B"], {t: draw.gauss(noiseless(model, t), 5) for t in run})
        for chosen, interval in zip(model, intervals(effects), strict=True):
            covered[chosen] += interval[0] <= model[chosen] <= interval[1]
    assert {chosen: count / 400 for chosen, count in covered.items()} == pytest.approx(
        dict.fromkeys(model, 0.95), abs=0.03
    )


def intervals(effects: Effects) -> list[tuple[float, float]]:
    found = [effects.mean_interval, *(e.interval for e in effects.effects)]
    return [interval for interval in found if interval is not None]


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([], "0 factors: 1 to 6"),
        (list("ABCDEFG"), "7 factors: 1 to 6"),
        (["A", "A"], "need different names"),
        (["A", ""], "need different names"),
        ("AB", "a sequence of names"),
    ],
)
def test_impossible_factors_are_refused(factors: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        design_trials(factors, 1, seed=0)


def test_an_experiment_without_replications_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        design_trials(["A"], 0, seed=0)


def test_incomplete_results_are_refused() -> None:
    results = trials(EXAMPLE)
    with pytest.raises(ValueError, match="no results"):
        compute_effects(["A", "B"], {})
    del results[Trial((1, -1), 2)]
    message = (
        r"11 of 12 trials; the first that is missing is Trial\(levels=\(1, -1\), replication=2\)"
    )
    with pytest.raises(ValueError, match=message):
        compute_effects(["A", "B"], results)


@pytest.mark.parametrize("trial", [Trial((1,), 1), Trial((1, 0), 1), Trial((1, 1), 0)])
def test_results_of_another_design_are_refused(trial: Trial) -> None:
    with pytest.raises(ValueError, match="not belong to a design with 2 factors"):
        compute_effects(["A", "B"], {**trials(EXAMPLE), trial: 1})


@pytest.mark.parametrize("response", [nan, inf, -inf])
def test_responses_must_be_finite(response: float) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        compute_effects(["A"], {Trial((-1,), 1): 1, Trial((1,), 1): response})


@pytest.mark.parametrize("response", [0, -1])
def test_the_multiplicative_model_needs_positive_responses(response: float) -> None:
    results = {Trial((-1,), 1): 1, Trial((1,), 1): response}
    assert compute_effects(["A"], results)["A"].effect == (response - 1) / 2
    with pytest.raises(ValueError, match="use the additive one"):
        compute_effects(["A"], results, multiplicative=True)
