"""2^k r factorial experiments: how much k factors and their interactions change a response.

After R. Jain, The Art of Computer Systems Performance Analysis (1991), chapters 17 and 18. Every
factor has two levels, -1 and +1. Each of the 2^k combinations is run r times. The additive model:
response = q0 + qA xA + qB xB + qAB xA xB + ... + error, where x is the level of a factor. If
effects multiply, as they do for times on a slow and a fast disk, the multiplicative model uses
logarithms of the responses.

This module does not run the trials, and does not know what the levels represent.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import exp, isfinite, log, prod, sqrt
from statistics import fmean

from queryprof.statistics.student import t_95

MAX_FACTORS = 6

Levels = tuple[int, ...]
"""The level of each factor, -1 or +1, in the order of the factors."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the experiment. Replications count from 1."""

    levels: Levels
    replication: int


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one factor, or of an interaction of several, on the response.

    `effect` is half of the difference between the high and the low level, in the response's unit.
    In the multiplicative model, `effect` is the square root of high / low. `interval` (95%) is None
    without replications. `sum_of_squares` is in the response's unit squared or, in the
    multiplicative model, of natural logarithms. `share` is its share of the total.
    """

    factors: tuple[str, ...]
    effect: float
    interval: tuple[float, float] | None
    sum_of_squares: float
    share: float

    @property
    def name(self) -> str:
        return " × ".join(self.factors)


@dataclass(frozen=True, slots=True)
class Effects:
    """The analysis of an experiment.

    `effects` has single factors first, then pairs, and so on. Shares are of the total variation (0
    to 1), and are 0 without variation. `mean` is q0: the mean response, or the geometric mean in
    the multiplicative model. The standard error applies to the mean and to every effect; in the
    multiplicative model, it is on the logarithmic scale.
    """

    is_multiplicative: bool
    replications: int
    mean: float
    mean_interval: tuple[float, float] | None
    effects: tuple[Effect, ...]
    error_sum_of_squares: float
    error_share: float
    error_degrees: int
    standard_error: float | None
    total_sum_of_squares: float

    def __getitem__(self, factors: str | tuple[str, ...]) -> Effect:
        """Return the effect of a factor, or of the interaction of several in any order."""
        wanted = {factors} if isinstance(factors, str) else set(factors)
        for effect in self.effects:
            if set(effect.factors) == wanted:
                return effect
        raise KeyError(factors)

    def is_certain(self, effect: Effect) -> bool:
        """Return whether the effect's interval excludes "no effect"."""
        if effect.interval is None:
            return False
        low, high = effect.interval
        nothing = 1.0 if self.is_multiplicative else 0.0
        return not low <= nothing <= high


@dataclass(frozen=True, slots=True)
class _ResponseScale:
    """Converts from the model's scale back to the scale of the responses."""

    multiplicative: bool
    half_width: float | None

    def value(self, q: float) -> float:
        return exp(q) if self.multiplicative else q

    def interval(self, q: float) -> tuple[float, float] | None:
        if self.half_width is None:
            return None
        return self.value(q - self.half_width), self.value(q + self.half_width)


def design_trials(factors: Sequence[str], replications: int, seed: int) -> tuple[Trial, ...]:
    """Return all trials in the order to run them.

    The order is random within each replication, so that changes during the experiment (a warm
    cache, a fuller disk) do not look like a factor.
    """
    _check_factors(factors)
    if replications < 1:
        raise ValueError(f"{replications} replications: at least 1 is needed")
    draw = random.Random(seed)  # noqa: S311 - no secret
    trials: list[Trial] = []
    for replication in range(1, replications + 1):
        combined = [Trial(levels, replication) for levels in _level_combinations(len(factors))]
        draw.shuffle(combined)
        trials += combined
    return tuple(trials)


def compute_effects(
    factors: Sequence[str], results: Mapping[Trial, float], *, multiplicative: bool = False
) -> Effects:
    """Compute the effects by the sign table, from the response to every trial of a design.

    Raises:
        ValueError: a trial is missing or not part of the design, or a response is not finite, or
            not positive in the multiplicative model.
    """
    _check_factors(factors)
    replications = _check_results(factors, results, multiplicative)
    # Use differences to one response, so that equal responses give exactly 0.
    model = {trial: log(y) if multiplicative else float(y) for trial, y in results.items()}
    origin = next(iter(model.values()))
    cells = {
        levels: [model[Trial(levels, r)] - origin for r in range(1, replications + 1)]
        for levels in _level_combinations(len(factors))
    }
    means = {levels: fmean(responses) for levels, responses in cells.items()}
    mean = origin + fmean(means.values())
    error = sum((y - means[levels]) ** 2 for levels, responses in cells.items() for y in responses)
    halves = _effects_by_factors(len(factors), means)
    squares = {chosen: len(model) * q * q for chosen, q in halves.items()}
    total = error + sum(squares.values())
    degrees = len(cells) * (replications - 1)
    standard_error = sqrt(error / degrees / len(model)) if degrees else None
    scale = _ResponseScale(multiplicative, standard_error and t_95(degrees) * standard_error)
    return Effects(
        is_multiplicative=multiplicative,
        replications=replications,
        mean=scale.value(mean),
        mean_interval=scale.interval(mean),
        effects=tuple(
            Effect(
                factors=tuple(factors[i] for i in chosen),
                effect=scale.value(q),
                interval=scale.interval(q),
                sum_of_squares=squares[chosen],
                share=squares[chosen] / total if total else 0.0,
            )
            for chosen, q in halves.items()
        ),
        error_sum_of_squares=error,
        error_share=error / total if total else 0.0,
        error_degrees=degrees,
        standard_error=standard_error,
        total_sum_of_squares=total,
    )


def _level_combinations(factors: int) -> tuple[Levels, ...]:
    """Return all combinations of levels. The first factor changes fastest, as in the book's
    tables.
    """
    return tuple(levels[::-1] for levels in product((-1, 1), repeat=factors))


def _effects_by_factors(count: int, means: Mapping[Levels, float]) -> dict[tuple[int, ...], float]:
    """Return the effect of each factor and each interaction. The keys are tuples of factor numbers.

    An effect is the mean of the responses, each multiplied by the product of the chosen factors'
    signs.
    """
    return {
        chosen: fmean(prod(levels[i] for i in chosen) * mean for levels, mean in means.items())
        for order in range(1, count + 1)
        for chosen in combinations(range(count), order)
    }


def _check_factors(factors: Sequence[str]) -> None:
    if isinstance(factors, str):
        raise ValueError(f"factors must be a sequence of names, not the text {factors!r}")  # noqa: TRY004
    if not 1 <= len(factors) <= MAX_FACTORS:
        raise ValueError(f"{len(factors)} factors: 1 to {MAX_FACTORS} are possible")
    if len(set(factors)) < len(factors) or not all(factors):
        raise ValueError(f"factors need different names: {', '.join(map(repr, factors))}")


def _check_results(
    factors: Sequence[str], results: Mapping[Trial, float], multiplicative: bool
) -> int:
    """Return the number of replications."""
    if not results:
        raise ValueError("no results: run the trials of the design first")
    known = _level_combinations(len(factors))
    for trial in results:
        if trial.levels not in known or trial.replication < 1:
            raise ValueError(f"{trial} does not belong to a design with {len(factors)} factors")
    replications = max(trial.replication for trial in results)
    if len(results) < replications * len(known):
        trials = (Trial(levels, r) for r in range(1, replications + 1) for levels in known)
        missing = next(trial for trial in trials if trial not in results)
        raise ValueError(
            f"incomplete results: {len(results)} of {replications * len(known)} trials; the first"
            f" that is missing is {missing}"
        )
    for trial, response in results.items():
        if not isfinite(response):
            raise ValueError(f"the response to {trial} is {response}, not a finite number")
        if multiplicative and response <= 0:
            raise ValueError(
                f"the response to {trial} is {response}: a multiplicative model needs numbers above"
                " 0; use the additive one"
            )
    return replications
