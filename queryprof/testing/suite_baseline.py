"""The baseline of a test suite, for any runner: compare tests with the baseline, and write it."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import astuple
from enum import Enum
from typing import Any

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.comparing.baseline_deviations import deviations_from_baseline
from queryprof.comparing.baseline_figures import (
    StatementFigures,
    TestFigures,
    figures_from_baseline,
    fold_statement_names,
)
from queryprof.errors import BaselineError
from queryprof.report.text.causes import cause_of_deviation
from queryprof.report.text.failures import regression_message
from queryprof.testing.baseline_file import Baseline, read_baseline, write_baseline

PYTHON = ".".join(map(str, sys.version_info[:2]))

TestRecord = dict[str, Any]
"""The figures of a test as plain data, which can be sent to other processes."""

SILENT: TestRecord = {
    "executions": 0,
    "database_ns": 0,
    "is_new": False,  # the test is not in the baseline
    "is_better": False,  # the test does less than its baseline, and nothing got worse
    "statements": None,  # the figures for the baseline, or None
    "causes": (),
    "repeated": (),
    "stalls": (),
    "scans": (),
}
"""The record of a test without queries, with all keys."""


class CollectedPart(Enum):
    """The part of a test suite that a run has collected: everything, complete files, or some tests
    of a file.
    """

    ALL = "all"
    FILES = "files"
    SOME = "some"


class SuiteBaseline:
    """The baseline at a path.

    Args:
        checks: compare tests with the baseline, which is read now.
        is_shuffled: whether the order of tests may change from run to run.

    Raises:
        BaselineError: the baseline cannot be read.
    """

    def __init__(
        self, path: str, rules: RegressionRules, *, checks: bool, is_shuffled: bool
    ) -> None:
        self.path = path
        self._rules = rules
        self._is_shuffled = is_shuffled
        self._known = read_baseline(path) if checks else None

    def failure_of(
        self,
        test: str,
        figures: TestFigures,
        record: TestRecord,
        with_sites: Callable[[], dict[str, StatementFigures]],
    ) -> str:
        """Return a message if a test does more than its baseline, or "". Adds the causes to the
        test's record.

        Args:
            with_sites: returns the figures with their call sites, for the message.
        """
        if self._known is None:
            return ""
        known = self._known.tests.get(test)
        if known is None:
            record["is_new"] = bool(fold_statement_names(figures))
            return ""
        before = fold_statement_names(figures_from_baseline(known))
        same = self._known.sqlite_version == sqlite3.sqlite_version
        found = deviations_from_baseline(before, fold_statement_names(figures), self._rules, same)
        if any(deviation.reasons for deviation in found):  # the message shows the call sites
            found = deviations_from_baseline(
                before, fold_statement_names(with_sites()), self._rules, same
            )
        worse = [deviation for deviation in found if deviation.reasons]
        record["is_better"] = bool(found) and not worse
        record["causes"] = [
            astuple(cause_of_deviation(deviation, self._is_shuffled)) for deviation in worse
        ]
        return regression_message(worse) if worse else ""

    def compared(self, tests: Iterable[str]) -> int:
        """Return the number of tests that were compared with the baseline."""
        return sum(test in self._known.tests for test in tests) if self._known else 0

    def other_versions(self) -> str:
        """Return a sentence if the baseline was made with other versions of Python or SQLite, or
        "".
        """
        if self._known is None:
            return ""
        pairs = (
            ("Python", self._known.python_version, PYTHON),
            ("SQLite", self._known.sqlite_version, sqlite3.sqlite_version),
        )
        found = [f"{what} {was}, but this run has {now}" for what, was, now in pairs if was != now]
        return f"the baseline has {'; '.join(found)}: this may be the cause" if found else ""

    def has_seen_nothing(
        self, records: Mapping[str, TestRecord], selected: Collection[str]
    ) -> bool:
        """Return whether no query was recorded although the baseline has queries of selected tests.

        The run has then checked nothing. Skipped tests count as selected.
        """
        if self._known is None:
            return False
        expected = [test for test in {*selected, *records} if self._known.tests.get(test)]
        return bool(expected) and not any(
            records.get(test, SILENT)["executions"] for test in expected
        )

    def compares_nothing(self, records: Mapping[str, TestRecord]) -> bool:
        """Return whether tests ran, but none is in the baseline."""
        return self._known is not None and bool(records) and not self.compared(records)

    def save(
        self, passed: Mapping[str, TestRecord], collected: Collection[str], selection: CollectedPart
    ) -> None:
        """Write the baseline: the passed tests, and old tests that still exist or were not
        selected.

        Args:
            collected: all tests that were found, whether they ran or not.

        Raises:
            BaselineError: the file cannot be written; or the old file is unreadable, and saving
                only some tests would lose the others.
        """
        try:
            old = read_baseline(self.path).tests
        except BaselineError as error:
            if os.path.lexists(self.path) and selection is not CollectedPart.ALL:
                raise BaselineError(
                    f"{error}; not saved, because only some tests ran and the others would be lost"
                ) from error
            old = {}  # an unreadable baseline is replaced when all tests are saved
        files = {test.partition("::")[0] for test in collected}
        gone = set(passed)  # includes tests that are no longer compared
        if selection is not CollectedPart.SOME:
            gone |= {one for one in old if one.partition("::")[0] in files} - set(collected)
        tests = {test: one for test, one in old.items() if test not in gone} | baseline_figures(
            passed
        )
        write_baseline(self.path, Baseline(sqlite3.sqlite_version, PYTHON, tests))


def baseline_figures(passed: Mapping[str, TestRecord]) -> dict[str, Any]:
    """Return the figures that a baseline keeps of each test."""
    return {
        test: record["statements"]
        for test, record in passed.items()
        if record["statements"] is not None
    }
