"""Django's test runner with a baseline of the tests' queries.

Set TEST_RUNNER, or run manage.py test --testrunner queryprof.testing.django_runner.QueryprofRunner.

The baseline has the same format as with the pytest plugin, so one file can serve Django and pytest.
Parallel tests are measured in their own processes and judged in the first process.
"""

from __future__ import annotations

import inspect
import os
import sys
import unittest
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.core.management.base import CommandError
from django.test.runner import (
    DiscoverRunner,
    ParallelTestSuite,
    RemoteTestResult,
    RemoteTestRunner,
)

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.comparing.baseline_figures import StatementFigures
from queryprof.core.absence import is_core_absent
from queryprof.core.settings import read_settings
from queryprof.errors import QueryprofError
from queryprof.report.inert import escape_control_characters
from queryprof.testing.calls import Calls
from queryprof.testing.meter import ENDED, Block, meter
from queryprof.testing.records import add_statements, describe, record_of
from queryprof.testing.suite_baseline import CollectedPart, SuiteBaseline, TestRecord
from queryprof.testing.summary import (
    NO_TEST_FOUND,
    NOTHING_COMPARED,
    NOTHING_SEEN,
    baseline_lines,
    most_lines,
    sign_lines,
    why_lines,
)

__unittest = True  # unittest omits this module's frames from tracebacks

EVERY_FILE = "test*.py"
"""Default of --pattern (django.test.runner.DiscoverRunner)."""

BASELINE = "queryprof-baseline.json"
SAVE = "manage.py test --queryprof-save"


@dataclass(frozen=True, slots=True)
class MeasuredTest:
    """A passed test.

    Attributes:
        figures: the figures of each statement, with call sites.
        is_whole: whether the same recording continued throughout the test.
    """

    record: TestRecord
    figures: dict[str, StatementFigures]
    is_whole: bool


def _running_script() -> str:
    """Return the file of the running command, such as manage.py."""
    return os.path.abspath(getattr(sys.modules.get("__main__"), "__file__", None) or "")


class _Measuring:
    """Measures the running test, from its setUp to its last cleanup."""

    def __init__(self) -> None:
        self._block: Block | None = None
        self._stall_ms = read_settings().stall_ms

    def begin(self) -> None:
        meter.renew()
        self._block = meter.open()

    def passed(self) -> MeasuredTest:
        """Return the figures of the test so far."""
        assert self._block is not None
        meter.border()
        is_whole = self._block.is_whole
        calls = Calls(
            list(self._block.parts), meter.descriptions, RegressionRules(), _running_script()
        )
        record = record_of(calls)
        describe(record, calls, self._stall_ms)
        figures = calls.figures()
        add_statements(record, figures)
        return MeasuredTest(record, figures, is_whole)

    def end(self) -> None:
        if self._block is not None:
            meter.close(self._block)
            self._block = None


class _RemoteResult(RemoteTestResult):
    """The result in a process of parallel tests. Sends the figures of passed tests to the first
    process.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._measuring = _Measuring()

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self._measuring.begin()

    def addSuccess(self, test: Any) -> None:
        self.events.append(("addMeasured", self.test_index, self._measuring.passed()))
        super().addSuccess(test)

    def stopTest(self, test: Any) -> None:
        self._measuring.end()
        super().stopTest(test)


class _RemoteRunner(RemoteTestRunner):
    resultclass = _RemoteResult

    def run(self, test: Any) -> Any:
        block = meter.open(with_plans=False, keeps_parts=False)
        try:
            return super().run(test)
        finally:
            meter.close(block)


class _ParallelSuite(ParallelTestSuite):
    runner_class = _RemoteRunner


class _Suite:
    """The run: the records of its tests, and the baseline."""

    def __init__(
        self, path: str, *, checks: bool, saves: bool, shows: bool, is_shuffled: bool
    ) -> None:
        self.checks, self.saves, self.shows = checks, saves, shows
        self._directory = os.getcwd()
        self.baseline = SuiteBaseline(
            path, RegressionRules(), checks=checks, is_shuffled=is_shuffled
        )
        self.collected: set[str] = set()
        self.selection = CollectedPart.SOME
        self.calls: dict[str, TestRecord] = {}
        self.failed: set[str] = set()

    def name_of(self, test: Any) -> str:
        """Return the name that pytest would give the test; "" if the test has no file.

        The file is relative to the working directory.
        """
        try:
            file = os.path.abspath(inspect.getfile(type(test)))
            method = test.id().rpartition(".")[2]
        except (TypeError, AttributeError):
            return ""
        path = os.path.relpath(file, self._directory).replace(os.sep, "/")
        return "::".join((path, *type(test).__qualname__.split("."), method))

    def judge(self, test: Any, measured: MeasuredTest) -> str:
        """Return a message if a passed test does more than its baseline, or ""."""
        name = self.name_of(test)
        if not name:
            return ""
        self.calls[name] = measured.record
        figures = measured.figures
        if not measured.is_whole and (self.checks or self.saves):
            self.failed.add(name)
            return ENDED
        message = self.baseline.failure_of(name, figures, measured.record, lambda: figures)
        if message:
            self.failed.add(name)
        return message

    def save(self) -> None:
        """Write the baseline. Raises QueryprofError."""
        passed = {name: one for name, one in self.calls.items() if name not in self.failed}
        if not passed:
            raise QueryprofError("the baseline is not saved: no test has passed")
        self.baseline.save(passed, self.collected, self.selection)

    def is_wrong(self) -> str:
        """Return a message if the run has checked nothing, or ""."""
        if self.checks and not self.collected:
            return NO_TEST_FOUND
        if self.checks and self.baseline.has_seen_nothing(self.calls, self.collected):
            return NOTHING_SEEN
        is_all = self.selection is CollectedPart.ALL
        compares_nothing = is_all and self.baseline.compares_nothing(self.calls)
        return NOTHING_COMPARED if compares_nothing else ""

    def lines(self) -> list[str]:
        """Return the lines of the summary."""
        most = most_lines(self.calls, None, lacks_failed=bool(self.failed))
        found = [*most, *sign_lines(self.calls)] if self.shows else []
        found += why_lines(self.calls, SAVE)
        found += filter(None, [self.is_wrong()])
        return [*found, *(baseline_lines(self.baseline, self.calls, SAVE) if self.checks else ())]


class _Judging(unittest.TestResult):
    """A test result that judges each test by its figures.

    The figures are measured here, or sent by another process.
    """

    suite: _Suite

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._measuring = _Measuring()
        self._sent: MeasuredTest | None = None

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self._sent = None
        self._measuring.begin()

    def addMeasured(self, _test: Any, measured: MeasuredTest) -> None:
        self._sent = measured

    def addSuccess(self, test: Any) -> None:
        message = self.suite.judge(test, self._sent or self._measuring.passed())
        if not message:
            super().addSuccess(test)
            return
        try:
            raise AssertionError(message)
        except AssertionError:
            self.addFailure(test, sys.exc_info())

    def addFailure(self, test: Any, err: Any) -> None:
        self.suite.failed.add(self.suite.name_of(test))
        super().addFailure(test, err)

    def addError(self, test: Any, err: Any) -> None:
        self.suite.failed.add(self.suite.name_of(test))
        super().addError(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.suite.failed.add(self.suite.name_of(test))
        super().addSubTest(test, subtest, err)

    def stopTest(self, test: Any) -> None:
        self._measuring.end()
        super().stopTest(test)


def tests_in(suite: Any) -> Iterator[Any]:
    """Yield the tests of a suite, including those of parallel suites."""
    for one in getattr(suite, "subsuites", None) or suite:
        if isinstance(one, Iterable):
            yield from tests_in(one)
        else:
            yield one


class QueryprofRunner(DiscoverRunner):
    """DiscoverRunner with --queryprof, --queryprof-save and --queryprof-check."""

    parallel_test_suite = _ParallelSuite

    def __init__(
        self,
        *,
        queryprof: bool = False,
        queryprof_save: bool = False,
        queryprof_check: bool = False,
        queryprof_baseline: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if queryprof_save and queryprof_check:
            raise CommandError(
                "queryprof: --queryprof-save writes the baseline that --queryprof-check reads: use"
                " only one",
                returncode=2,
            )
        if queryprof_baseline and not (queryprof_save or queryprof_check):
            raise CommandError(
                "queryprof: --queryprof-baseline needs --queryprof-save or --queryprof-check",
                returncode=2,
            )
        self._suite: _Suite | None = None
        if (queryprof or queryprof_save or queryprof_check) and not is_core_absent():
            try:
                self._suite = _Suite(
                    os.path.abspath(queryprof_baseline or BASELINE),
                    checks=queryprof_check,
                    saves=queryprof_save,
                    shows=queryprof,
                    is_shuffled=self.shuffle is not False or self.reverse or self.parallel > 1,
                )
            except QueryprofError as error:
                raise CommandError(f"queryprof: {error}", returncode=2) from error
        if self._suite is None:
            self.parallel_test_suite = ParallelTestSuite
        self._is_whole = self.pattern == EVERY_FILE and not any(
            options.get(name) for name in ("tags", "exclude_tags", "test_name_patterns")
        )
        self._is_wrong = False

    @classmethod
    def add_arguments(cls, parser: Any) -> None:
        """Add the options to those of manage.py test."""
        super().add_arguments(parser)
        group = parser.add_argument_group("queryprof", "tests' work with the database")
        group.add_argument(
            "--queryprof", action="store_true", help="Show the tests with the most queries."
        )
        group.add_argument(
            "--queryprof-save",
            action="store_true",
            help="Save each test's queries to the baseline.",
        )
        group.add_argument(
            "--queryprof-check",
            action="store_true",
            help="Fail tests that do more than in the baseline.",
        )
        group.add_argument(
            "--queryprof-baseline",
            metavar="FILE",
            help=f"Baseline file. The pytest plugin can use the same file. [{BASELINE}]",
        )

    def build_suite(self, test_labels: Any = None, **kwargs: Any) -> Any:
        """Collect the tests."""
        suite = super().build_suite(test_labels, **kwargs)
        if self._suite:
            is_all = self._is_whole and not test_labels
            self._suite.selection = CollectedPart.ALL if is_all else CollectedPart.SOME
            self._suite.collected = set(map(self._suite.name_of, tests_in(suite)))
        return suite

    def get_resultclass(self) -> Any:
        """Return the class of the result: Django's, with measuring."""
        base = super().get_resultclass()
        if self._suite is None:
            return base
        bases = (_Judging, base or unittest.TextTestResult)
        return type("Result", bases, {"suite": self._suite})

    def run_suite(self, suite: Any, **kwargs: Any) -> Any:
        """Run the tests and print the summary."""
        if self._suite is None:
            return super().run_suite(suite, **kwargs)
        block = meter.open(with_plans=False, keeps_parts=False)
        try:
            result = super().run_suite(suite, **kwargs)
        finally:
            meter.close(block)
        lines = self._suite.lines()
        if self._suite.saves:
            lines.append(self._save(self._suite))
        self._is_wrong |= bool(self._suite.is_wrong())
        self.log("\nqueryprof\n" + "\n".join(escape_control_characters(line) for line in lines))
        return result

    def _save(self, suite: _Suite) -> str:
        try:
            suite.save()
        except QueryprofError as error:
            self._is_wrong = True
            return str(error)
        return f"baseline saved to {suite.baseline.path}"

    def suite_result(self, suite: Any, result: Any, **kwargs: Any) -> int:
        """Return how many tests failed; 1 if a baseline was not saved or nothing was checked."""
        failures: int = super().suite_result(suite, result, **kwargs)
        return failures or int(self._is_wrong)
