"""Sums, means and comparisons of measurements."""

from __future__ import annotations

from collections.abc import Sequence

from queryprof.model.advice import Cost
from queryprof.planner.judging import Measurement


def total_cost(found: Sequence[Measurement]) -> Cost:
    """Return the sum of several measurements."""
    return Cost(
        float(sum(one.ns for one in found)),
        _sum_if_known([one.vm_steps for one in found]),
        _sum_if_known([one.page_fetches for one in found]),
    )


def mean_cost(costs: Sequence[Cost]) -> Cost:
    """Return the mean of several costs."""
    steps = _sum_if_known([one.vm_steps for one in costs])
    pages = _sum_if_known([one.page_fetches for one in costs])
    count = len(costs)
    return Cost(
        sum(one.ns for one in costs) / count,
        None if steps is None else steps / count,
        None if pages is None else pages / count,
    )


def is_less_work(before: Cost, after: Cost) -> bool | None:
    """Return whether VM steps or page fetches decreased; None if both are unknown."""
    counted = [
        now < was
        for was, now in (
            (before.vm_steps, after.vm_steps),
            (before.page_fetches, after.page_fetches),
        )
        if was is not None and now is not None
    ]
    return any(counted) if counted else None


def _sum_if_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if len(known) == len(values) else None
