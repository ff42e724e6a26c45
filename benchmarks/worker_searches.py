"""Published searches for a number of workers, which queryprof's own is compared with: as they are
for pools of threads, with their known flaws: a dip of the system's own is taken for an effect of the
step.
"""

from __future__ import annotations

from queryprof.tuning.workers import check_bounds, check_operations


class LinearSearch:
    """One interval each from `start` (the number of cores) down to `lowest`; the best of them.

    A new search replaces it when the load has changed. `highest` bounds `start` alone.
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
    """Steps of one worker from `highest` downwards, for ever: on while an interval completes no
    fewer operations than the one before, else back to the number before and on from there.
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
