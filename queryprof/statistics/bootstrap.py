"""The uncertainty of a change between two sets of runs: a bootstrap interval of the ratio of means.

The method is the percentile interval of B. Efron and R. Tibshirani, An Introduction to the
Bootstrap (1993), chapter 13. It resamples whole runs, not single executions. All executions of a
run share its conditions, such as a busy machine or a cold cache, so resampling them would make a
change look too certain.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean

RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 1
"""A fixed seed, so that the same runs always give the same interval."""


def ratio_interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95% interval of mean(after) / mean(before), or None if the mean of
    `before` is 0.
    """
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
