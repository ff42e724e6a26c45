"""The fixture `queryprof`: what the running test has executed so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from queryprof.analysis.baseline_figures import TestFigures, add_figures, count_queries
from queryprof.report.text.failures import budget_message


class Queries:
    """The fixture's value.

    Args:
        figures_by_part: returns those of the running test so far; each call ends a part.
    """

    def __init__(self, figures_by_part: Callable[[], list[TestFigures]]) -> None:
        self._figures_by_part = figures_by_part

    @property
    def queries(self) -> TestFigures:
        """Statement -> figures (executions, rows, vm_steps, full_scan_steps, sites)."""
        return add_figures(self._figures_by_part())

    def count(self, pattern: str = "") -> int:
        """Executions of the statements in which the regular expression is found."""
        found = re.compile(pattern)
        return sum(f.executions for s, f in self.queries.items() if found.search(s))

    @contextmanager
    def at_most(self, executions: int) -> Iterator[None]:
        """Fails when the block has more than this number of executions."""
        __tracebackhide__ = True
        before = self._figures_by_part()
        yield
        inside = add_figures(self._figures_by_part()[len(before) :])
        if count_queries(inside) > executions:
            reason = f"{count_queries(inside)} queries, at most {executions} are allowed"
            pytest.fail(budget_message([(reason, inside)]), pytrace=False)
