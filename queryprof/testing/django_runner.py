"""Django's test runner with a baseline of the tests' queries: TEST_RUNNER, or manage.py test
--testrunner queryprof.testing.django_runner.QueryprofRunner.

The baseline is that of the pytest plugin: one file serves both. Tests in parallel are measured in
their processes and judged in the first one.
"""

from __future__ import annotations

import inspect
import os
import sys
import unittest
from dataclasses import dataclass
from typing import Any

from django.core.management.base import CommandError
from django.test.runner import (
    DiscoverRunner,
    ParallelTestSuite,
    RemoteTestResult,
    RemoteTestRunner,
)

from queryprof.analysis.baseline_figures import Figures
from queryprof.analysis.baseline_rules import Rules
from queryprof.core.absence import is_absent
from queryprof.core.settings import read_settings
from queryprof.errors import QueryprofError
from queryprof.report.inert import visible
from queryprof.testing.calls import Calls
from queryprof.testing.meter import Block, meter
from queryprof.testing.records import add_statements, describe, record_of
from queryprof.testing.suite_baseline import SuiteBaseline, TestRecord
from queryprof.testing.summary import (
    NOTHING_SEEN,
    baseline_lines,
    most_lines,
    sign_lines,
    why_lines,
)

__unittest = True  # unittest leaves frames of this module out of what it shows

BASELINE = "queryprof-baseline.json"
SAVE = "manage.py test --queryprof-save"


@dataclass(frozen=True, slots=True)
class Measured:
    """A test that has passed: its record, and the figures with their call sites."""

    record: TestRecord
    figures: dict[str, Figures]


def _script() -> str:
    """The file of the command that runs: manage.py."""
    return os.path.abspath(getattr(sys.modules.get("__main__"), "__file__", None) or "")


class _Measuring:
    """What measures the running test: from its setUp to its last cleanup."""

    def __init__(self) -> None:
        self._block: Block | None = None
        self._stall_ms = read_settings().stall_ms

    def begin(self) -> None:
        self._block = meter.open()

    def passed(self) -> Measured:
        """The figures of the test so far."""
        assert self._block is not None
        meter.border()
        calls = Calls(list(self._block.parts), meter.descriptions, Rules(), _script())
        record = record_of(calls)
        describe(record, calls, self._stall_ms)
        figures = calls.figures()
        add_statements(record, figures)
        return Measured(record, figures)

    def end(self) -> None:
        if self._block is not None:
            meter.close(self._block)
            self._block = None


class _RemoteResult(RemoteTestResult):
    """In a process of parallel tests: sends what a passed test has executed to the first one."""

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
    """The run as a whole: the records of its tests, and the baseline that judges them."""

    def __init__(self, path: str, *, checks: bool, saves: bool, shows: bool) -> None:
        self.checks, self.saves, self.shows = checks, saves, shows
        self._directory = os.path.dirname(os.path.abspath(path))
        self.baseline = SuiteBaseline(path, Rules(), checks=checks, is_shuffled=False)
        self.calls: dict[str, TestRecord] = {}
        self.failed: set[str] = set()

    def name_of(self, test: Any) -> str:
        """As pytest names it, with the file as seen from the baseline; "": it has no file."""
        try:
            file = os.path.abspath(inspect.getfile(type(test)))
            method = test.id().rpartition(".")[2]
        except (TypeError, AttributeError):
            return ""
        path = os.path.relpath(file, self._directory).replace(os.sep, "/")
        return "::".join((path, *type(test).__qualname__.split("."), method))

    def judge(self, test: Any, measured: Measured) -> str:
        """Why a test that has passed fails; "": it does not."""
        name = self.name_of(test)
        if not name:
            return ""
        self.calls[name] = measured.record
        figures = measured.figures
        message = self.baseline.regressed(name, figures, measured.record, lambda: figures)
        if message:
            self.failed.add(name)
        return message

    def save(self, is_whole: bool) -> None:
        """Writes the baseline. Raises QueryprofError."""
        passed = {name: one for name, one in self.calls.items() if name not in self.failed}
        if not passed:
            raise QueryprofError("the baseline is not saved: no test has passed")
        ran_in = {name.partition("::")[0] for name in passed} if is_whole else ()
        self.baseline.save(passed, self.failed, ran_in)

    def lines(self) -> list[str]:
        """The summary."""
        found = [*most_lines(self.calls, {}), *sign_lines(self.calls)]
        found += why_lines(self.calls, SAVE)
        if self.checks and self.baseline.has_seen_nothing(self.calls):
            found.append(NOTHING_SEEN)
        return [*found, *(baseline_lines(self.baseline, self.calls, SAVE) if self.checks else ())]


def _result_of(suite: _Suite, base: Any) -> type:
    class Result(base):
        """Measures each test, or is sent what another process has measured, and judges it."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._measuring = _Measuring()
            self._sent: Measured | None = None

        def startTest(self, test: Any) -> None:
            super().startTest(test)
            self._sent = None
            self._measuring.begin()

        def addMeasured(self, _test: Any, measured: Measured) -> None:
            self._sent = measured

        def addSuccess(self, test: Any) -> None:
            message = suite.judge(test, self._sent or self._measuring.passed())
            if not message:
                super().addSuccess(test)
                return
            try:
                raise AssertionError(message)
            except AssertionError:
                self.addFailure(test, sys.exc_info())

        def addFailure(self, test: Any, err: Any) -> None:
            suite.failed.add(suite.name_of(test))
            super().addFailure(test, err)

        def addError(self, test: Any, err: Any) -> None:
            suite.failed.add(suite.name_of(test))
            super().addError(test, err)

        def stopTest(self, test: Any) -> None:
            self._measuring.end()
            super().stopTest(test)

    return Result


class QueryprofRunner(DiscoverRunner):
    """DiscoverRunner with --queryprof, --queryprof-save and --queryprof-check."""

    parallel_test_suite = _ParallelSuite

    def __init__(
        self,
        *,
        queryprof: bool = False,
        queryprof_save: bool = False,
        queryprof_check: bool = False,
        queryprof_baseline: str = BASELINE,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if queryprof_save and queryprof_check:
            raise CommandError(
                "queryprof: --queryprof-save makes what --queryprof-check compares with: use one of"
                " them",
                returncode=2,
            )
        self._suite: _Suite | None = None
        if (queryprof or queryprof_save or queryprof_check) and not is_absent():
            try:
                self._suite = _Suite(
                    queryprof_baseline,
                    checks=queryprof_check,
                    saves=queryprof_save,
                    shows=queryprof,
                )
            except QueryprofError as error:
                raise CommandError(f"queryprof: {error}", returncode=2) from error
        if self._suite is None:
            self.parallel_test_suite = ParallelTestSuite
        self._is_whole = not any(
            options.get(name) for name in ("tags", "exclude_tags", "test_name_patterns")
        )
        self._is_wrong = False

    @classmethod
    def add_arguments(cls, parser: Any) -> None:
        """Adds the options to those of manage.py test."""
        super().add_arguments(parser)
        group = parser.add_argument_group("queryprof", "tests' work with the database")
        group.add_argument(
            "--queryprof", action="store_true", help="Shows the tests with most queries."
        )
        group.add_argument(
            "--queryprof-save",
            action="store_true",
            help="Writes each test's queries to the baseline.",
        )
        group.add_argument(
            "--queryprof-check",
            action="store_true",
            help="Fails tests that do more than in the baseline.",
        )
        group.add_argument(
            "--queryprof-baseline",
            metavar="FILE",
            default=BASELINE,
            help=f"The baseline, which pytest may share. [{BASELINE}]",
        )

    def build_suite(self, test_labels: Any = None, **kwargs: Any) -> Any:
        """Collects the tests."""
        self._is_whole = self._is_whole and not test_labels
        return super().build_suite(test_labels, **kwargs)

    def get_resultclass(self) -> Any:
        """The class of the result: Django's, which measures, too."""
        base = super().get_resultclass()
        return _result_of(self._suite, base or unittest.TextTestResult) if self._suite else base

    def run_suite(self, suite: Any, **kwargs: Any) -> Any:
        """Runs the tests, and shows what they did."""
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
        self._is_wrong |= self._suite.checks and NOTHING_SEEN in lines
        self.log("\nqueryprof\n" + "\n".join(visible(line) for line in lines))
        return result

    def _save(self, suite: _Suite) -> str:
        try:
            suite.save(self._is_whole)
        except QueryprofError as error:
            self._is_wrong = True
            return str(error)
        return f"baseline saved to {suite.baseline.path}"

    def suite_result(self, suite: Any, result: Any, **kwargs: Any) -> int:
        """How many tests failed; 1, too, if a baseline was not saved or checked nothing."""
        failures: int = super().suite_result(suite, result, **kwargs)
        return failures or int(self._is_wrong)
