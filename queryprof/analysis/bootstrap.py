"""How certain a change between two sets of runs is: the bootstrap interval of the ratio of means.

After B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993), chapter 13: the
percentile interval. Runs, not single executions, are drawn: executions of one run share its
conditions (a busy machine, a cold cache), so they would make a change look too certain.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean

RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 1
"""Fixed, so that the same runs always give the same interval."""


def ratio_interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float] | None:
    """The interval (95%) of mean(after) / mean(before); None when `before` has a mean of 0."""
    if fmean(before) == 0:
        return None
    draw = random.Random(SEED)  # noqa: S311 - no secret
    ratios = []
    for _ in range(RESAMPLES):
        base = fmean(draw.choices(before, k=len(before)))
        if base:
            ratios.append(fmean(draw.choices(after, k=len(after))) / base)
    ratios.sort()
    tail = (1 - CONFIDENCE) / 2
    return ratios[int(tail * len(ratios))], ratios[int((1 - tail) * len(ratios)) - 1]
