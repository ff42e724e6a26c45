"""Find pragmas that make a workload faster: a 2^k factorial experiment of replays.

See `statistics/factorial.py` for the method (R. Jain). Effects on times multiply, so the model is
multiplicative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from queryprof.errors import ProofError
from queryprof.replay.replaying import Replay, ReplaySetting, parse_pragma, play_on_copy
from queryprof.statistics.factorial import MAX_FACTORS, Trial, compute_effects, design_trials
from queryprof.statistics.pragma_effects import (
    RISKS,
    PragmaCombination,
    PragmaExperiment,
    PragmaFactor,
    pragmas_of,
)

SEED = 1

DEFAULT_FACTORS = (
    "journal_mode=delete,wal",
    "synchronous=full,normal",
    "cache_size=-2000,-64000",
    "mmap_size=0,268435456",
)


def parse_factor(text: str) -> PragmaFactor:
    """Parse NAME=LOW,HIGH. Raises ProofError."""
    name, _, levels = text.partition("=")
    low, _, high = levels.partition(",")
    if not high or low == high:
        raise ProofError(f"--factor {text}: write NAME=VALUE,VALUE, as in synchronous=full,normal")
    (name, low), (_, high) = parse_pragma(f"{name}={low}"), parse_pragma(f"{name}={high}")
    return PragmaFactor(name, (low, high))


def replay_combinations(
    replay: Replay,
    factors: Sequence[PragmaFactor],
    replications: int,
    report_progress: Callable[[int, int], None],
) -> PragmaExperiment:
    """Replay the workload with each combination of levels, in random order.

    Args:
        report_progress: called before each replay with its number and the number of replays.

    Raises:
        ProofError: there are too many factors, two factors have the same name, or a replay fails.
    """
    names = [factor.name for factor in factors]
    if not 1 <= len(names) <= MAX_FACTORS or len(set(names)) < len(names):
        raise ProofError(f"lab pragmas: give 1 to {MAX_FACTORS} different pragmas")
    trials = design_trials(names, replications, SEED)
    taken_s: dict[Trial, float] = {}
    for number, trial in enumerate(trials, 1):
        report_progress(number, len(trials))
        taken_s[trial] = max(
            play_on_copy(replay, ReplaySetting(pragmas_of(factors, trial))).database_s, 1e-9
        )
    combinations: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for trial, seconds in taken_s.items():
        combinations.setdefault(pragmas_of(factors, trial), []).append(seconds)
    found = [
        PragmaCombination(
            pragmas, tuple(times), tuple(RISKS[one] for one in pragmas if one in RISKS)
        )
        for pragmas, times in combinations.items()
    ]
    effects = compute_effects(names, taken_s, multiplicative=True)
    return PragmaExperiment(
        tuple(factors), effects, tuple(sorted(found, key=lambda one: one.mean_s))
    )
