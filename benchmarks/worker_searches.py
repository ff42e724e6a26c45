"""Published searches for a number of workers, to compare with queryprof's own.

They are for thread pools and keep their known flaw: they mistake a dip of the system for an effect
of the last step.
"""

from __future__ import annotations

from queryprof.statistics.worker_search import check_bounds, check_operations


class LinearSearch:
    """Try one interval each from `start` (the number of cores) to `lowest`, and choose the best.

    When the load changes, use a new search. Only `start` is limited by `highest`.
    """

    def __init__(self, lowest: int, highest: int, start: int | None = None) -> None:
        check_bounds(lowest, highest)
        self.workers = highest if start is None else start
        if not lowest <= self.workers <= highest:
            raise ValueError(f"a start of {start} workers is not from {lowest} to {highest}")
        self.best = self.workers
        self.is_settled = False
        self._lowest = lowest
        self._most = -1.0

    def observe(self, operations: float) -> None:
        check_operations(operations)
        if self.is_settled:
            return
        if operations > self._most:
            self.best, self._most = self.workers, operations
        if self.workers > self._lowest:
            self.workers -= 1
        else:
            self.workers, self.is_settled = self.best, True


class HillClimbing:
    """Decrease the workers from `highest` one at a time, without an end.

    While an interval completes at least as many operations as the previous one, continue. Otherwise
    return to the previous number and continue from there.
    """

    is_settled = False

    def __init__(self, lowest: int, highest: int) -> None:
        check_bounds(lowest, highest)
        self.workers = self.best = highest
        self._lowest, self._highest = lowest, highest
        self._direction = -1
        self._before: float | None = None
        self._most = -1.0

    def observe(self, operations: float) -> None:
        check_operations(operations)
        if operations > self._most:
            self.best, self._most = self.workers, operations
        is_worse = self._before is not None and operations < self._before
        at_bound = not self._lowest <= self.workers + self._direction <= self._highest
        if is_worse or at_bound:
            self._direction = -self._direction
        self._before = operations
        following = self.workers + self._direction
        self.workers = min(max(following, self._lowest), self._highest)
