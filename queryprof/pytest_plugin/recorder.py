"""Record each test separately, and summarize at the end.

With pytest-xdist, every worker records and judges its own tests. The results are sent with the test
reports to the process that summarizes and saves.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import pytest

from queryprof.analysis.baseline_rules import IGNORED, REPEATS, SCANNED_ROWS, RegressionRules
from queryprof.core import _core
from queryprof.core.settings import read_settings
from queryprof.errors import QueryprofError, SettingsError
from queryprof.findings.finding import TEST_CATEGORIES
from queryprof.region.changes import ChangeSet
from queryprof.report.inert import escape_control_characters
from queryprof.testing.calls import Calls
from queryprof.testing.meter import ENDED, Block, meter
from queryprof.testing.records import record_of
from queryprof.testing.suite_baseline import CollectedPart
from queryprof.testing.summary import (
    NOTHING_COMPARED,
    NOTHING_SEEN,
    baseline_lines,
    most_lines,
    sign_lines,
    why_lines,
)

if TYPE_CHECKING:
    from queryprof.pytest_plugin.gate import Gate
    from queryprof.pytest_plugin.queries import CountedQueries
    from queryprof.testing.suite_baseline import TestRecord

SAVE = "pytest --queryprof-save"
"""The command that saves the baseline."""

SELECTING_OPTIONS = ("keyword", "markexpr", "deselect", "lf", "stepwise")
"""pytest's options that select some tests of a file."""

FROM_COMMAND_LINE = pytest.Config.ArgsSource.ARGS

ENDED_NORMALLY = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""Exit codes of a run that was not interrupted."""


def rules_of(config: pytest.Config, gates: AbstractSet[str]) -> RegressionRules:
    """Return the settings of a run. Raises SettingsError."""
    fail_on = frozenset(config.getini("queryprof_fail_on"))
    if not fail_on & gates:  # only findings are given: keep the default comparisons
        fail_on |= RegressionRules().fail_on
    known = gates | TEST_CATEGORIES
    if not fail_on <= known:
        raise SettingsError(
            f"queryprof_fail_on: {', '.join(sorted(fail_on - known))}: unknown; use"
            f" {', '.join(sorted(known))}"
        )
    patterns = [IGNORED, *config.getini("queryprof_ignore")]
    try:
        ignore = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
        tolerance = float(config.getini("queryprof_vmsteps_tolerance")) / 100
    except re.error as error:
        raise SettingsError(f"queryprof_ignore: {error.pattern!r}: {error}") from error
    except ValueError as error:
        raise SettingsError(f"queryprof_vmsteps_tolerance: {error}") from error
    return RegressionRules(fail_on, ignore, tolerance)


def is_suspicious(parts: list[ChangeSet]) -> bool:
    """Return whether a test may have repeats, scans or stalls, so that the gate should
    analyze it.
    """
    sums: dict[int, tuple[int, int]] = {}
    for part in parts:
        if part.steps:
            return True
        for statement, (executions, steps) in part.executed.items():
            before = sums.get(statement, (0, 0))
            sums[statement] = (before[0] + executions, before[1] + steps)
    return any(executions > REPEATS or steps >= SCANNED_ROWS for executions, steps in sums.values())


class TestRecorder:
    """The plugin object of every process that runs tests, and of the process that summarizes.

    Args:
        gates: values of queryprof_fail_on that compare figures.
    """

    __test__ = False

    def __init__(self, config: pytest.Config, gates: AbstractSet[str]) -> None:
        self._config = config
        self._rules = rules_of(config, gates)
        second_run: str | None = config.getoption("queryprof_save_to")
        baseline = second_run or config.getini("queryprof_baseline")
        self._path = str(config.rootpath / baseline)
        self._saves: bool = config.getoption("queryprof_save") or bool(second_run)
        self._verifies: bool = config.getoption("queryprof_verify") and not second_run
        self._checks: bool = config.getoption("queryprof_check") and not self._saves
        self._lists: bool = config.getoption("queryprof")
        self._known_gate: Gate | None = None
        if self._saves or self._checks:
            self._gate()  # raises an error now if the baseline cannot be read
        self._block: Block | None = None  # of the running phase
        self._report: TestRecord | None = None  # the record of the phase that has ended
        self._finds = not self._rules.fail_on.isdisjoint(TEST_CATEGORIES)
        if self._finds:
            self._gate()  # raises an error now if the accepted findings cannot be read
            _core.sample_all_stacks(
                True
            )  # stacks show whether a library or the program makes a call
            self._recorded_block()  # modules may create the tables while they are imported
        self._collected: set[str] = set()
        self._selected: set[str] = set()
        # Data from test reports, by test:
        self._calls: dict[str, TestRecord] = {}
        self._fixtures: dict[str, int] = {}
        self._failed: set[str] = set()
        self._not_saved = ""
        self._compares_nothing = self._has_seen_nothing = False
        self._verification: list[str] = []  # the result of a second run

    def _gate(self) -> Gate:
        if self._known_gate is None:
            from queryprof.pytest_plugin.gate import Gate

            self._known_gate = Gate(
                self._config, self._rules, self._path, checks=self._checks, saves=self._saves
            )
        return self._known_gate

    # -- recording -------------------------------------------------------------------------

    def _recorded_block(self) -> Block:
        """Return the block of the running phase (setup, call, teardown). Records if needed."""
        if self._block is None:
            settings = read_settings()
            settings.explain_locks = True
            self._block = meter.open(settings=settings)
        meter.resume()  # a test may have ended the recording
        return self._block

    def _begin_phase(self, is_call: bool = False) -> None:
        """Begin a phase. Queries since the last phase count for the new phase."""
        phase = self._recorded_block()
        if not is_call:
            meter.renew()
        meter.want_plans(phase, is_call)
        phase.parts.clear()
        phase.is_whole = True

    def _end_phase(self) -> TestRecord:
        self._report = record_of(self._calls_so_far())
        return self._report

    def _calls_so_far(self) -> Calls:
        """Return the calls of the running phase so far. This ends a part of the phase."""
        phase = self._recorded_block()
        meter.border()
        return Calls(list(phase.parts), meter.descriptions, self._rules)

    def queries(self) -> CountedQueries:
        """Return the fixture's value."""
        from queryprof.pytest_plugin.queries import CountedQueries

        self._recorded_block()
        return CountedQueries(self._calls_so_far)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, None]:
        self._begin_phase()
        yield
        self._end_phase()

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        yield from self.measured_call(item)

    def measured_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Run the body of pytest_runtest_call, and fail the test if it exceeds its limits."""
        self._begin_phase(is_call=True)
        outcome = yield
        report = self._end_phase()
        calls = Calls(list(self._recorded_block().parts), meter.descriptions, self._rules)
        is_held = self._saves or self._checks or item.get_closest_marker("queryprof") is not None
        is_held = is_held or self._finds
        if is_held or is_suspicious(calls.parts):
            has_passed = outcome.excinfo is None
            message = self._gate().check(item, calls, report, has_passed)
            if is_held and has_passed and not self._recorded_block().is_whole:
                message = ENDED
            if message:
                outcome.force_exception(pytest.fail.Exception(message, pytrace=False))

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, None]:
        self._begin_phase()
        yield
        self._end_phase()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, None]:
        outcome = yield
        if self._report is not None and outcome.excinfo is None:
            outcome.get_result().queryprof = self._report
            self._report = None

    def pytest_unconfigure(self) -> None:
        if self._block is not None:
            meter.close(self._block)
            self._block = None
        _core.sample_all_stacks(False)

    # -- summing up ------------------------------------------------------------------------

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._collected |= {item.nodeid for item in items}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._selected |= {item.nodeid for item in session.items}
        self._collected |= self._selected

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._selected |= set(ids)
        self._collected |= self._selected

    def _command_line_selection(self, session: pytest.Session) -> CollectedPart:
        """Return the part of the suite that the command line selects. An interrupted run has not
        collected all tests.
        """
        chosen = any(self._config.getoption(name, None) for name in SELECTING_OPTIONS)
        given = self._config.args if self._config.args_source is FROM_COMMAND_LINE else []
        if chosen or any("::" in str(argument) for argument in given):
            return CollectedPart.SOME
        ended = session.exitstatus in ENDED_NORMALLY and not (
            session.shouldstop or session.shouldfail
        )
        return CollectedPart.FILES if given or not ended else CollectedPart.ALL

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found: TestRecord | None = getattr(report, "queryprof", None)
        if found is None:
            return
        if report.when != "call":
            self._fixtures[report.nodeid] = (
                self._fixtures.get(report.nodeid, 0) + found["executions"]
            )
            return
        self._calls[report.nodeid] = found
        if not report.passed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self._config, "workerinput") or not (self._saves or self._checks):
            return
        gate = self._gate()
        passed = {test: r for test, r in self._calls.items() if test not in self._failed}
        gate.keep_times(passed)
        if self._saves:
            try:
                if not passed:
                    raise QueryprofError("the baseline is not saved: no test has passed")
                gate.baseline.save(passed, self._collected, self._command_line_selection(session))
                if self._verifies and session.exitstatus in ENDED_NORMALLY:
                    self._run_again(session, passed)
            except QueryprofError as error:
                self._not_saved = str(error)
        self._compares_nothing = (
            gate.baseline.compares_nothing(self._calls)
            and self._command_line_selection(session) is CollectedPart.ALL
        )
        self._has_seen_nothing = gate.baseline.has_seen_nothing(self._calls, self._selected)
        is_wrong = self._not_saved or self._compares_nothing or self._has_seen_nothing
        if is_wrong and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _run_again(self, session: pytest.Session, passed: dict[str, TestRecord]) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line("")
            reporter.write_line("queryprof: running the tests a second time ...")
        found = self._gate().run_again(passed)
        self._verification = found.lines()
        if not found.is_stable:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        is_wanted = self._lists or self._saves or self._checks
        if not is_wanted or hasattr(self._config, "workerinput"):
            return
        out = terminalreporter
        out.section("queryprof")
        listed = [*most_lines(self._calls, self._fixtures), *sign_lines(self._calls)]
        for line in (*(listed if self._lists else ()), *why_lines(self._calls, SAVE)):
            write_line(out, line)
        self._write_baseline(out)

    def _write_baseline(self, out: pytest.TerminalReporter) -> None:
        if self._not_saved:
            write_line(out, self._not_saved, red=True)
        elif self._saves:
            write_line(out, f"baseline saved to {self._path}")
        for line in self._verification:
            write_line(out, line)
        if not self._checks:
            return
        baseline = self._gate().baseline
        if self._has_seen_nothing:
            write_line(out, NOTHING_SEEN, red=True)
        if self._compares_nothing:
            write_line(out, NOTHING_COMPARED, red=True)
        for line in baseline_lines(baseline, self._calls, SAVE):
            write_line(out, line)


def write_line(out: pytest.TerminalReporter, line: str, **markup: bool) -> None:
    """Write one line of the summary, with control characters escaped."""
    out.write_line(escape_control_characters(line), **markup)
