"""Compares a test with its budgets and its baseline, and writes the baseline.

It is imported when more than the counts of a test are needed: for a marker, a check, a baseline to
be saved, or because something in the test is suspicious.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple
from threading import current_thread
from typing import Any

import pytest

from queryprof.analysis.baseline_deviations import deviations
from queryprof.analysis.baseline_figures import (
    Figures,
    TestFigures,
    count_queries,
    figures_from,
    figures_of,
    fold_names,
    numbers_of,
)
from queryprof.analysis.baseline_rules import REPEATS, Rules
from queryprof.core.settings import read_settings
from queryprof.errors import QueryprofError
from queryprof.model import LockTime, Step
from queryprof.pytest_plugin.baseline_file import Baseline, read_baseline, write_baseline
from queryprof.pytest_plugin.times import TestTimes
from queryprof.pytest_plugin.verification import Verification, verify
from queryprof.region.changes import Part
from queryprof.region.descriptions import Descriptions
from queryprof.report.text.causes import cause_of
from queryprof.report.text.failures import (
    budget_message,
    lock_message,
    regression_message,
    slower_message,
    stall_line,
    stall_message,
)

LOCK_BUDGETS = {"max_lock_wait_ms": "wait", "max_transaction_ms": "hold"}
"""What they are about, of queryprof.model.LockTime."""

BUDGETS = frozenset(
    {"max_queries", "max_repeats", "max_stall_ms", "no_full_scans", "baseline", *LOCK_BUDGETS}
)

SHUFFLERS = ("randomly", "random_order", "random-order", "reverse")
"""The names of plugins that run tests in another order each time."""

PYTHON = ".".join(map(str, sys.version_info[:2]))

TestRecord = dict[str, Any]
"""The figures of a phase of a test, in a form for pytest's reports: names and numbers."""


def is_shuffled(config: pytest.Config) -> bool:
    """Whether the tests of a process may run in another order than in another run: shuffled, or
    shared out among workers.
    """
    return any(config.pluginmanager.hasplugin(name) for name in SHUFFLERS) or hasattr(
        config, "workerinput"
    )


class TestCalls:
    """What one test executed, part by part; described when it is needed."""

    def __init__(self, parts: list[Part], descriptions: Descriptions, rules: Rules) -> None:
        self._parts = parts
        self._descriptions = descriptions
        self._rules = rules

    def figures(self, with_sites: bool = True) -> dict[str, Figures]:
        """The figures of all parts together."""
        return self._figures_of(self._parts, with_sites)

    def figures_by_part(self) -> list[TestFigures]:
        return [self._figures_of([part], with_sites=True) for part in self._parts]

    def _figures_of(self, parts: list[Part], with_sites: bool) -> dict[str, Figures]:
        aggregates = [one for part in parts for one in self._descriptions.aggregates(part)]
        plans = [plan for part in parts for plan in self._descriptions.plans(part)]
        return figures_of(aggregates, self._rules, plans, with_sites, current_thread().name)

    def longer_than(self, stall_ms: float) -> tuple[Step, ...]:
        """The functions with a step of an event loop that took longer, the longest first."""
        steps = [step for part in self._parts for step in self._descriptions.steps(part)]
        found = [step for step in steps if step.durations.max_ns > stall_ms * 1e6]
        return tuple(sorted(found, key=lambda step: -step.durations.max_ns))

    def locks_longer_than(self, kind: str, ms: float) -> tuple[LockTime, ...]:
        """The waits for locks, or the holds, that took longer, the longest first."""
        times = [one for part in self._parts for one in self._descriptions.lock_times(part)]
        found = [one for one in times if one.kind == kind and one.max_ns > ms * 1e6]
        return tuple(sorted(found, key=lambda one: -one.max_ns))


class Gate:
    """Judges tests.

    Args:
        path: of the baseline; checks: tests are compared with it; saves: it is written.

    Raises:
        QueryprofError: the baseline cannot be read, or a check needs what this run does not have.
    """

    def __init__(
        self, config: pytest.Config, rules: Rules, path: str, *, checks: bool, saves: bool
    ) -> None:
        self._config = config
        self._rules = rules
        self._path = path
        self._checks, self._saves = checks, saves
        self._baseline = read_baseline(path) if checks else None
        times = "time" in rules.fail_on and (saves or checks)
        self._times = TestTimes(config) if times else None
        self._stall_ms = read_settings().stall_ms
        self._is_shuffled = is_shuffled(config)
        self._known_descriptions: Descriptions | None = None

    def begin_again(self) -> None:
        """Forgets the names of a recording that has ended."""
        self._known_descriptions = None

    def calls(self, parts: list[Part]) -> TestCalls:
        """What a test executed in these parts."""
        if self._known_descriptions is None:
            self._known_descriptions = Descriptions()
        return TestCalls(parts, self._known_descriptions, self._rules)

    def check(
        self, item: pytest.Item, parts: list[Part], report: TestRecord, has_passed: bool
    ) -> str:
        """Adds the findings on a test to its report; returns why a test that has passed so far
        fails, or the empty string.
        """
        marker = item.get_closest_marker("queryprof")
        is_held = marker is None or marker.kwargs.get("baseline", True)
        calls = self.calls(parts)
        figures = calls.figures(with_sites=False)
        if any(one.executions > REPEATS for one in figures.values()):
            figures = calls.figures()
        stalls = calls.longer_than(self._stall_ms)
        report["repeated"] = [
            (
                statement,
                site.executions,
                f"{site.frame.function} {site.frame.file}:{site.frame.line}",
            )
            for statement, one in figures.items()
            for site in one.sites
            if site.executions > REPEATS and site.frame
        ]
        report["stalls"] = [(step.durations.max_ns, stall_line(step)) for step in stalls]
        report["scans"] = [
            (statement, ", ".join(one.scanned_tables))
            for statement, one in figures.items()
            if one.scans_a_large_table
        ]
        if self._saves and is_held:
            report["statements"] = numbers_of(fold_names(figures))
        if not has_passed:
            return ""
        return (
            self._over_budget(item, calls)
            or self._locked(item, calls)
            or self._stalled(item, calls, stalls)
            or (self._regressed(item.nodeid, calls, figures, report) if is_held else "")
            or self._slower(item.nodeid, calls, report["database_ns"])
        )

    def _over_budget(self, item: pytest.Item, calls: TestCalls) -> str:
        marker = item.get_closest_marker("queryprof")
        if marker is None:
            return ""
        unknown = sorted(set(marker.kwargs) - BUDGETS)
        if unknown or marker.args:
            return (
                f"queryprof marker of {item.nodeid}: {', '.join(unknown) or 'a value'} is no"
                f" budget; there are {', '.join(sorted(BUDGETS))}, each by name"
            )
        figures = calls.figures()
        exceeded = []
        queries = marker.kwargs.get("max_queries")
        if queries is not None and count_queries(figures) > queries:
            exceeded.append((f"{count_queries(figures)} queries, max_queries={queries}", figures))
        repeats = marker.kwargs.get("max_repeats")
        if repeats is not None:
            over = {s: f for s, f in figures.items() if f.repeats > repeats}
            if over:
                exceeded.append((f"repeated from one line, max_repeats={repeats}", over))
        if marker.kwargs.get("no_full_scans"):
            over = {s: f for s, f in figures.items() if f.scans_a_large_table}
            if over:
                exceeded.append(("scans of large tables, no_full_scans", over))
        return budget_message(exceeded) if exceeded else ""

    def _locked(self, item: pytest.Item, calls: TestCalls) -> str:
        marker = item.get_closest_marker("queryprof")
        for name, kind in LOCK_BUDGETS.items():
            budget = marker.kwargs.get(name) if marker else None
            found = calls.locks_longer_than(kind, budget) if budget is not None else ()
            if found:
                return lock_message(f"{name}={budget}", found)
        return ""

    def _stalled(self, item: pytest.Item, calls: TestCalls, stalls: tuple[Step, ...]) -> str:
        marker = item.get_closest_marker("queryprof")
        budget = marker.kwargs.get("max_stall_ms") if marker else None
        if budget is not None:
            stalls = calls.longer_than(budget)
            return stall_message(f"max_stall_ms={budget}", stalls) if stalls else ""
        if self._checks and "stalls" in self._rules.fail_on and stalls:
            return stall_message(f"stall_ms={self._stall_ms:g}", stalls)
        return ""

    def _regressed(
        self, test: str, calls: TestCalls, figures: dict[str, Figures], report: TestRecord
    ) -> str:
        if self._baseline is None:
            return ""
        known = self._baseline.tests.get(test)
        if known is None:
            report["is_new"] = bool(figures)
            return ""
        before = fold_names(figures_from(known))
        same = self._baseline.sqlite_version == sqlite3.sqlite_version
        found = deviations(before, fold_names(figures), self._rules, same)
        if any(deviation.reasons for deviation in found):  # the message shows the call sites
            found = deviations(before, fold_names(calls.figures()), self._rules, same)
        worse = [deviation for deviation in found if deviation.reasons]
        report["is_better"] = bool(found) and not worse
        report["causes"] = [astuple(cause_of(deviation, self._is_shuffled)) for deviation in worse]
        return regression_message(worse) if worse else ""

    def _slower(self, test: str, calls: TestCalls, database_ns: int) -> str:
        if self._times is None or not self._checks:
            return ""
        longest_ns = self._times.slower_than(test, database_ns)
        if longest_ns is None:
            return ""
        return slower_message(database_ns, longest_ns, calls.figures())

    # -- at the end of the run -------------------------------------------------------------

    def keep_times(self, passed: Mapping[str, TestRecord]) -> None:
        """Keeps the database times of the tests that passed, if times are compared."""
        if self._times is not None:
            self._times.keep({test: report["database_ns"] for test, report in passed.items()})

    def compared(self, tests: Iterable[str]) -> int:
        """How many of these tests were compared with the baseline."""
        return sum(test in self._baseline.tests for test in tests) if self._baseline else 0

    def other_versions(self) -> str:
        """Of what else the baseline was made, in a sentence; "": of the same."""
        if self._baseline is None:
            return ""
        pairs = (
            ("Python", self._baseline.python_version, PYTHON),
            ("SQLite", self._baseline.sqlite_version, sqlite3.sqlite_version),
        )
        found = [
            f"{what} {was}, and this is {now}" for what, was, now in pairs if was not in ("", now)
        ]
        return f"the baseline is of {'; of '.join(found)}: that may be why" if found else ""

    def has_seen_nothing(self, reports: Mapping[str, TestRecord]) -> bool:
        """Whether no query was seen although the baseline has some: then nothing was checked."""
        if self._baseline is None:
            return False
        expected = [test for test in reports if self._baseline.tests.get(test)]
        return bool(expected) and not any(reports[test]["executions"] for test in expected)

    def save(
        self, passed: Mapping[str, TestRecord], others: Collection[str], ran_in: Iterable[str]
    ) -> None:
        """Writes the baseline: the tests that passed, and of the old one those that were not
        selected or did not run to their end.

        Args:
            others: tests that were deselected or have failed.
            ran_in: the files of which tests ran.

        Raises:
            BaselineError: it cannot be written.
        """
        try:
            old = read_baseline(self._path).tests
        except QueryprofError:
            old = {}  # there is none, or it is damaged, and written again for that reason
        files = set(ran_in)
        kept = {
            test: statements
            for test, statements in old.items()
            if test in others or test.partition("::")[0] not in files
        }
        tests = {**kept, **_with_calls(passed)}
        write_baseline(self._path, Baseline(sqlite3.sqlite_version, tests, PYTHON))

    def verify(self, passed: Mapping[str, TestRecord]) -> Verification:
        """Runs the tests a second time. Raises QueryprofError."""
        return verify(self._config, _with_calls(passed), self._rules)


def _with_calls(passed: Mapping[str, TestRecord]) -> dict[str, Any]:
    """The statements of each test that executed any."""
    return {test: report["statements"] for test, report in passed.items() if report["statements"]}
