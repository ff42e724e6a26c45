"""Records each test separately, and sums up at the end.

With pytest-xdist every worker records and judges its own tests; the results are sent with their
reports to the process that sums up and saves.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from queryprof.analysis.baseline_rules import IGNORED, REPEATS, SCANNED_ROWS, Rules
from queryprof.analysis.units import counted
from queryprof.core import _core
from queryprof.core.settings import read_settings
from queryprof.errors import QueryprofError, SettingsError
from queryprof.pytest_plugin.summary import write_causes, write_line, write_most, write_signs
from queryprof.region.changes import Changes, Part
from queryprof.session import session

if TYPE_CHECKING:
    from queryprof.analysis.baseline_figures import TestFigures
    from queryprof.pytest_plugin.gate import Gate, TestRecord
    from queryprof.pytest_plugin.queries import Queries

GATES = frozenset({"counts", "plans", "vmsteps", "stalls", "time"})
COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""The exit codes of a run that was not interrupted."""

SILENT: TestRecord = {
    "executions": 0,
    "database_ns": 0,
    "is_new": False,  # not in the baseline
    "is_better": False,  # than the baseline, and nowhere worse
    "statements": {},
    "causes": (),
    "repeated": (),
    "stalls": (),
    "scans": (),
}
"""The report of a phase of a test without queries; it has all the keys."""


def rules_of(config: pytest.Config) -> Rules:
    """The settings of a run. Raises SettingsError."""
    fail_on = frozenset(config.getini("queryprof_fail_on"))
    if not fail_on <= GATES:
        raise SettingsError(
            f"queryprof_fail_on: {', '.join(sorted(fail_on - GATES))}: must be of"
            f" {', '.join(sorted(GATES))}"
        )
    patterns = [IGNORED, *config.getini("queryprof_ignore")]
    try:
        ignore = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
        tolerance = float(config.getini("queryprof_vmsteps_tolerance")) / 100
    except re.error as error:
        raise SettingsError(f"queryprof_ignore: {error.pattern!r}: {error}") from error
    except ValueError as error:
        raise SettingsError(f"queryprof_vmsteps_tolerance: {error}") from error
    return Rules(fail_on, ignore, tolerance)


def is_suspicious(parts: list[Part]) -> bool:
    """Whether a test may have repeats, scans or stalls: then the gate analyses it."""
    sums: dict[int, tuple[int, int]] = {}
    for part in parts:
        if part.steps:
            return True
        for statement, (executions, steps) in part.executed.items():
            before = sums.get(statement, (0, 0))
            sums[statement] = (before[0] + executions, before[1] + steps)
    return any(executions > REPEATS or steps >= SCANNED_ROWS for executions, steps in sums.values())


class TestRecorder:
    """A plugin object: one of every process that runs tests, and of the one that sums up."""

    __test__ = False

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._rules = rules_of(config)
        second_run: str | None = config.getoption("queryprof_save_to")
        baseline = second_run or config.getini("queryprof_baseline")
        self._path = str(config.rootpath / baseline)
        self._saves: bool = config.getoption("queryprof_save") or bool(second_run)
        self._verifies: bool = config.getoption("queryprof_verify") and not second_run
        self._checks: bool = config.getoption("queryprof_check") and not self._saves
        self._shows: bool = config.getoption("queryprof") or self._saves or self._checks
        self._known_gate: Gate | None = None
        if self._saves or self._checks:
            self._gate()  # which raises now if it cannot read the baseline
        self._changes: Changes | None = None
        self._started_session = False
        self._parts: list[Part] = []  # of the running phase
        self._is_call = False
        self._report: TestRecord | None = None  # of the phase that has ended
        self._deselected: set[str] = set()
        # What reports brought, by test:
        self._calls: dict[str, TestRecord] = {}
        self._fixtures: dict[str, int] = {}
        self._failed: set[str] = set()
        self._not_saved = ""
        self._verification: list[str] = []  # what a second run showed

    def _gate(self) -> Gate:
        if self._known_gate is None:
            from queryprof.pytest_plugin.gate import Gate

            self._known_gate = Gate(
                self._config, self._rules, self._path, checks=self._checks, saves=self._saves
            )
        return self._known_gate

    # -- recording -------------------------------------------------------------------------

    def _record(self) -> Changes:
        if self._changes is None or not session.is_on:
            if self._changes is not None:  # a test has ended the recording, whose names are gone
                self._parts = []
                self._gate().begin_again()
            settings = read_settings()
            settings.explain_locks = True
            self._started_session = session.start(settings)
            _core.plans_allow(1.0)  # the same plans in every run, at any cost
            self._changes = Changes()
        return self._changes

    def _begin_phase(self, is_call: bool = False) -> None:
        """Begins a phase; queries between the last phase and this one count for this one."""
        self._is_call = is_call
        self._record()
        self._parts = []

    def _end_part(self) -> None:
        self._parts.append(self._record().take(with_plans=self._is_call))

    def _end_phase(self) -> TestRecord:
        self._end_part()
        self._report = {
            **SILENT,
            "executions": sum(part.executions for part in self._parts),
            "database_ns": sum(part.database_ns for part in self._parts),
        }
        return self._report

    def queries(self) -> Queries:
        """The fixture's value."""
        from queryprof.pytest_plugin.queries import Queries

        self._record()
        return Queries(self._figures_by_part)

    def _figures_by_part(self) -> list[TestFigures]:
        self._end_part()
        return self._gate().calls(self._parts).figures_by_part()

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, None]:
        self._begin_phase()
        yield
        self._end_phase()

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        self._begin_phase(is_call=True)
        outcome = yield
        report = self._end_phase()
        is_held = self._saves or self._checks or item.get_closest_marker("queryprof") is not None
        if is_held or is_suspicious(self._parts):
            has_passed = outcome.excinfo is None
            message = self._gate().check(item, self._parts, report, has_passed)
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
        if self._changes is not None:
            self._changes.close()
            self._changes = None
            if self._started_session:
                session.stop()

    # -- summing up ------------------------------------------------------------------------

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._deselected |= {item.nodeid for item in items}

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
            ran_in = {test.partition("::")[0] for test in self._calls}
            try:
                if not passed:
                    raise QueryprofError("the baseline is not saved: no test has passed")
                gate.save(passed, self._deselected | self._failed, ran_in)
                if self._verifies and session.exitstatus in COMPLETE:
                    self._verify(session, passed)
            except QueryprofError as error:
                self._not_saved = str(error)
        is_wrong = self._not_saved or gate.has_seen_nothing(self._calls)
        if is_wrong and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _verify(self, session: pytest.Session, passed: dict[str, TestRecord]) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line("")
            reporter.write_line("queryprof: running the tests a second time ...")
        found = self._gate().verify(passed)
        self._verification = found.lines()
        if not found.is_stable:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._shows or hasattr(self._config, "workerinput"):
            return
        out = terminalreporter
        out.section("queryprof")
        if not self._calls or not any(f["executions"] for f in self._calls.values()):
            write_line(out, "No test called a database.")
        else:
            write_most(out, self._calls, self._fixtures)
        write_signs(out, self._calls)
        write_causes(out, self._calls)
        self._write_baseline(out)

    def _write_baseline(self, out: pytest.TerminalReporter) -> None:
        if self._not_saved:
            write_line(out, self._not_saved, red=True)
        elif self._saves:
            write_line(out, f"baseline saved to {self._path}")
        for line in self._verification:
            write_line(out, line)
        if self._checks and self._gate().has_seen_nothing(self._calls):
            write_line(
                out,
                "nothing was measured, though the baseline has queries: this check checked nothing",
                red=True,
            )
        worse = sum(bool(found["causes"]) for found in self._calls.values())
        if self._checks and (number := self._gate().compared(self._calls)):
            does = "does" if worse == 1 else "do"
            write_line(
                out,
                f"{counted(number, 'test')} compared with the baseline: {worse or 'none'} {does}"
                " more",
            )
        if worse and (line := self._gate().other_versions()):
            write_line(out, line)
        better = sum(found["is_better"] for found in self._calls.values())
        new = sum(found["is_new"] for found in self._calls.values())
        if better:
            write_line(
                out,
                f"{counted(better, 'test')} with less than in the baseline; accept that with:"
                " pytest --queryprof-save",
            )
        if new:
            write_line(
                out,
                f"{counted(new, 'test')} not in the baseline; add them with: pytest"
                " --queryprof-save",
            )
