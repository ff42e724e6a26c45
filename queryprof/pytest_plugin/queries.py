"""The fixture `queryprof`: the queries of the running test so far."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from queryprof.comparing.baseline_figures import TestFigures, add_figures
from queryprof.core.absence import absence_reason
from queryprof.testing.at_most import at_most
from queryprof.testing.calls import Calls


class CountedQueries:
    """The value of the fixture.

    Args:
        calls_so_far: returns the calls of the running test. Each call ends a part (testing/calls).
    """

    def __init__(self, calls_so_far: Callable[[], Calls]) -> None:
        self._calls_so_far = calls_so_far

    @property
    def queries(self) -> TestFigures:
        """Figures by statement (executions, rows, vm_steps, full_scan_steps, sites)."""
        return add_figures(self._calls_so_far().figures_by_part())

    def count(self, pattern: str = "") -> int:
        """Return the executions of statements that the regular expression matches."""
        found = re.compile(pattern)
        return sum(f.executions for s, f in self.queries.items() if found.search(s))

    def at_most(self, queries: int | None = None, **limits: Any) -> AbstractContextManager[object]:
        """Fail the test if the block exceeds limits: see queryprof.at_most."""
        return _AtMost(queries, **limits)


class LimitError(pytest.fail.Exception, AssertionError):  # type: ignore[misc, name-defined]
    """An AssertionError that pytest reports without a traceback."""


class _AtMost(at_most):
    """Reports exceeded limits without a traceback, which would end in this module."""

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        __tracebackhide__ = True
        try:
            super().__exit__(kind, *rest)
        except AssertionError as error:
            raise LimitError(str(error), pytrace=False) from None  # type: ignore[call-arg]


class _Unrecorded(CountedQueries):
    """The fixture's value if nothing can be recorded.

    Limits are ignored, and a test that reads figures is skipped.
    """

    def at_most(self, queries: int | None = None, **limits: Any) -> AbstractContextManager[object]:
        at_most(queries, **limits)  # only to report invalid limits
        return nullcontext()


def queries_without_recording() -> CountedQueries:
    """Return the fixture's value for systems where nothing can be recorded."""

    def skip() -> Calls:
        pytest.skip(f"this installation cannot record: {absence_reason()}")

    return _Unrecorded(skip)
