"""The fixture `queryprof`: what the running test has executed so far."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from queryprof.analysis.baseline_figures import TestFigures, add_figures
from queryprof.core.absence import absence
from queryprof.testing.at_most import at_most
from queryprof.testing.calls import Calls


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

    def at_most(self, queries: int | None = None, **limits: Any) -> AbstractContextManager[object]:
        """Fails the test when the block exceeds limits: those of queryprof.at_most."""
        return _AtMost(queries, **limits)


class _AtMost(at_most):
    """Says what is exceeded without a traceback, which would end in here."""

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        __tracebackhide__ = True
        try:
            super().__exit__(kind, *rest)
        except AssertionError as error:
            pytest.fail(str(error), pytrace=False)


class _Unrecorded(Queries):
    """Where nothing can be recorded: its limits hold, and a test that reads figures is skipped."""

    def at_most(self, queries: int | None = None, **limits: Any) -> AbstractContextManager[object]:
        at_most(queries, **limits)  # one that is none is an error here, too
        return nullcontext()


def unrecorded() -> Queries:
    """The fixture's value where nothing can be recorded."""

    def skip() -> Calls:
        pytest.skip(f"nothing is recorded here: {absence()}")

    return _Unrecorded(skip)
