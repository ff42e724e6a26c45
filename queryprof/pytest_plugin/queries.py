"""The fixture `queryprof`: what the running test has executed so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from queryprof.analysis.baseline_figures import TestFigures, add_figures
from queryprof.core.absence import absence
from queryprof.testing.at_most import judged
from queryprof.testing.calls import Calls
from queryprof.testing.limits import limits_of
from queryprof.testing.meter import meter


class Queries:
    """The fixture's value.

    Args:
        calls_so_far: returns those of the running test; each call ends a part.
    """

    def __init__(self, calls_so_far: Callable[[], Calls]) -> None:
        self._calls_so_far = calls_so_far

    @property
    def queries(self) -> TestFigures:
        """Statement -> figures (executions, rows, vm_steps, full_scan_steps, sites)."""
        return add_figures(self._calls_so_far().figures_by_part())

    def count(self, pattern: str = "") -> int:
        """Executions of the statements in which the regular expression is found."""
        found = re.compile(pattern)
        return sum(f.executions for s, f in self.queries.items() if found.search(s))

    @contextmanager
    def at_most(self, queries: int | None = None, **limits: Any) -> Iterator[None]:
        """Fails the test when the block exceeds limits: those of queryprof.at_most."""
        __tracebackhide__ = True
        allowed = limits_of({"queries": queries, **limits})
        block = meter.open(with_plans=allowed.is_of_plans)
        try:
            yield
            message = judged(block, allowed)
        finally:
            meter.close(block)
        if message:
            pytest.fail(message, pytrace=False)


class _Unrecorded(Queries):
    """Where nothing can be recorded: its limits hold, and a test that reads figures is skipped."""

    @contextmanager
    def at_most(self, queries: int | None = None, **limits: Any) -> Iterator[None]:
        limits_of({"queries": queries, **limits})
        yield


def unrecorded() -> Queries:
    """The fixture's value where nothing can be recorded."""

    def skip() -> Calls:
        pytest.skip(f"nothing is recorded here: {absence()}")

    return _Unrecorded(skip)
