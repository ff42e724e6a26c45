"""Compare a test with its limits and its baseline, and write the baseline.

This module is imported only if it is needed: for a marker, for a check, to save a baseline, or
because the counts of a test are suspicious.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.comparing.baseline_figures import StatementFigures
from queryprof.core.settings import read_settings
from queryprof.findings.accepted import read_accepted_findings
from queryprof.findings.finding import TEST_CATEGORIES
from queryprof.pytest_plugin.times import TestTimes
from queryprof.pytest_plugin.verification import Verification, run_again
from queryprof.report.text.failures import finding_message, slower_message, stall_message
from queryprof.testing.calls import Calls
from queryprof.testing.limits import excess_of_limits, limits_of
from queryprof.testing.records import add_statements, describe
from queryprof.testing.suite_baseline import SuiteBaseline, TestRecord, baseline_figures

HAS_GROWN = pytest.StashKey[bool]()
"""The stash's key for whether the test ran on growing data."""

NOT_GROWN = (
    "max_growth cannot be checked: pytest did not call the test as a function; use"
    " queryprof.check_growth() in the test (or assertGrowth() of queryprof.TestCase)"
)

SHUFFLERS = ("randomly", "random_order", "random-order", "reverse")
"""Names of plugins that change the order of tests from run to run."""


def is_shuffled(config: pytest.Config) -> bool:
    """Return whether the order of tests in a process may change from run to run.

    The order may change if tests are shuffled, or distributed among workers.
    """
    return any(config.pluginmanager.hasplugin(name) for name in SHUFFLERS) or hasattr(
        config, "workerinput"
    )


def limits_by_name(item: pytest.Item) -> dict[str, Any]:
    """Return the arguments of the markers of a test, its class and its module. The nearest wins."""
    limits: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("queryprof"))):
        limits |= marker.kwargs
    return limits


class Gate:
    """Checks tests against their limits and the baseline.

    Args:
        path: path of the baseline.
        checks: compare tests with the baseline.
        saves: write the baseline.

    Raises:
        QueryprofError: the baseline cannot be read, or a check is impossible in this run.
    """

    def __init__(
        self, config: pytest.Config, rules: RegressionRules, path: str, *, checks: bool, saves: bool
    ) -> None:
        self._config = config
        self._rules = rules
        self._checks, self._saves = checks, saves
        self.baseline = SuiteBaseline(path, rules, checks=checks, is_shuffled=is_shuffled(config))
        times = "time" in rules.fail_on and (saves or checks)
        self._times = TestTimes(config) if times else None
        has_faults = not rules.fail_on.isdisjoint(TEST_CATEGORIES)
        self._accepted = read_accepted_findings(config.rootpath) if has_faults else {}
        self._stall_ms = read_settings().stall_ms

    def check(self, item: pytest.Item, calls: Calls, report: TestRecord, has_passed: bool) -> str:
        """Add suspicious signs of a test to its record. Returns a message if a passed test must
        fail, or "".
        """
        is_held = limits_by_name(item).get("baseline", True)
        figures = describe(report, calls, self._stall_ms)
        if self._saves and is_held:
            add_statements(report, figures)
        if not has_passed:
            return ""
        # The summary needs the comparison even if the test fails for another reason.
        worse = self._regression_message(item.nodeid, calls, figures, report) if is_held else ""
        return (
            self._limit_message(item, calls)
            or self._finding_message(item, calls)
            or self._stall_message(item, calls)
            or worse
            or self._slower_message(item.nodeid, calls, report["database_ns"])
        )

    @staticmethod
    def _limit_message(item: pytest.Item, calls: Calls) -> str:
        values = {name: value for name, value in limits_by_name(item).items() if name != "baseline"}
        if "max_growth" in values:
            return "" if item.stash.get(HAS_GROWN, False) else NOT_GROWN
        try:
            for marker in item.iter_markers("queryprof"):
                if marker.args:
                    raise TypeError(f"{marker.args[0]!r}: pass the limit by name")
            limits = limits_of(values, "max_")
        except (TypeError, ValueError) as error:
            return f"queryprof marker of {item.nodeid}: {error}"
        return excess_of_limits(limits, calls, "max_")

    def _finding_message(self, item: pytest.Item, calls: Calls) -> str:
        categories = self._rules.fail_on & TEST_CATEGORIES
        if not categories:
            return ""
        from queryprof.testing.faults import findings_in_calls

        return finding_message(findings_in_calls(calls, categories, str(item.path), self._accepted))

    def _stall_message(self, item: pytest.Item, calls: Calls) -> str:
        has_stall_limit = "max_stall_ms" in limits_by_name(item)
        if not self._checks or "stalls" not in self._rules.fail_on or has_stall_limit:
            return ""
        stalls = calls.longer_than(self._stall_ms)
        return stall_message(f"stall_ms={self._stall_ms:g}", stalls) if stalls else ""

    def _regression_message(
        self, test: str, calls: Calls, figures: dict[str, StatementFigures], report: TestRecord
    ) -> str:
        return self.baseline.failure_of(test, figures, report, calls.figures)

    def _slower_message(self, test: str, calls: Calls, database_ns: int) -> str:
        if self._times is None or not self._checks:
            return ""
        longest_ns = self._times.slower_than(test, database_ns)
        if longest_ns is None:
            return ""
        return slower_message(database_ns, longest_ns, calls.figures())

    # -- at the end of the run -------------------------------------------------------------

    def keep_times(self, passed: Mapping[str, TestRecord]) -> None:
        """Store the database times of passed tests, if times are compared."""
        if self._times is not None:
            self._times.keep({test: report["database_ns"] for test, report in passed.items()})

    def run_again(self, passed: Mapping[str, TestRecord]) -> Verification:
        """Run the tests a second time. Raises QueryprofError."""
        executed = {test: one for test, one in baseline_figures(passed).items() if one}
        return run_again(self._config, executed, self._rules)
