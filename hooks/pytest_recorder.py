"""Records each test apart, holds it to its budgets and its baseline, and sums up at the end.

With pytest-xdist every worker records and checks its own tests; what they found travels with
their reports to the process that sums up and saves.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from threading import current_thread
from typing import Any

import pytest

from queryprof.analysis.baseline import (
    IGNORED,
    REPEATS,
    Figures,
    Rules,
    TestFigures,
    add_figures,
    count_queries,
    figures_from,
    figures_of,
    fold_names,
    numbers_of,
)
from queryprof.analysis.deviations import deviations
from queryprof.core import _core
from queryprof.core.settings import read_settings
from queryprof.errors import QueryprofError, SettingsError
from queryprof.hooks.pytest_summary import write_causes, write_line, write_most, write_signs
from queryprof.hooks.pytest_times import TestTimes
from queryprof.hooks.pytest_verification import verification_lines, verify
from queryprof.model import Aggregate, Plan, Step
from queryprof.report.causes import Cause, cause_of
from queryprof.report.failures import (
    budget_message,
    regression_message,
    slower_message,
    stall_line,
    stall_message,
)
from queryprof.session import session
from queryprof.trace.baseline_file import Baseline, read_baseline, write_baseline
from queryprof.trace.changes import Changes

BUDGETS = frozenset({"max_queries", "max_repeats", "max_stall_ms", "no_full_scans", "baseline"})
GATES = frozenset({"counts", "plans", "vmsteps", "stalls", "time"})
COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""How a run ends that was not broken off."""

SHUFFLERS = ("randomly", "random_order", "random-order", "reverse")
"""Plugins by which tests run in another order each time, by their names."""


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


def is_shuffled(config: pytest.Config) -> bool:
    """Whether the tests of a process may run in another order than in another run: shuffled, or
    shared out among workers.
    """
    return any(config.pluginmanager.hasplugin(name) for name in SHUFFLERS) or hasattr(
        config, "workerinput"
    )


@dataclass
class _Phase:
    """One phase of one test, as it travels with the report."""

    executions: int
    database_ns: int
    figures: dict[str, Figures]
    is_new: bool = False  # not in the baseline
    is_better: bool = False  # than the baseline, and nowhere worse
    stalls: tuple[Step, ...] = ()  # the longest first
    causes: tuple[Cause, ...] = ()  # of its failure against the baseline
    is_held: bool = True  # to a baseline: not marked with baseline=False

    def plain(self) -> dict[str, Any]:
        """As pytest's reports can carry it: names and numbers."""
        return {
            "executions": self.executions,
            "database_ns": self.database_ns,
            "is_new": self.is_new,
            "is_better": self.is_better,
            "statements": numbers_of(fold_names(self.figures)) if self.is_held else {},
            "causes": [astuple(cause) for cause in self.causes],
            "repeated": [
                (statement, site.executions, f"{site.frame.function} {site.frame.file}:{site.frame.line}")
                for statement, one in self.figures.items()
                for site in one.sites
                if site.executions > REPEATS and site.frame
            ],
            "stalls": [(step.durations.max_ns, stall_line(step)) for step in self.stalls],
            "scans": [
                (statement, ", ".join(one.scanned_tables))
                for statement, one in self.figures.items()
                if one.scans_a_large_table
            ],
        }  # fmt: skip


class Queries:
    """The fixture: what the running test has asked so far."""

    def __init__(self, recorder: TestRecorder) -> None:
        self._recorder = recorder

    @property
    def queries(self) -> TestFigures:
        """Statement -> figures (executions, rows, vm_steps, full_scan_steps, sites)."""
        return self._recorder.so_far()

    def count(self, pattern: str = "") -> int:
        """Executions of the statements in which the regular expression is found."""
        found = re.compile(pattern)
        return sum(f.executions for s, f in self.queries.items() if found.search(s))

    @contextmanager
    def at_most(self, executions: int) -> Iterator[None]:
        """Fails when the block asks more than so many times."""
        __tracebackhide__ = True
        before = self._recorder.parts()
        yield
        inside = add_figures(self._recorder.parts()[len(before) :])
        if count_queries(inside) > executions:
            reason = f"{count_queries(inside)} queries, at most {executions} are allowed:"
            pytest.fail(budget_message("", [(reason, inside)]), pytrace=False)


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
        self._baseline = read_baseline(self._path) if self._checks else None
        times = "time" in self._rules.fail_on and (self._saves or self._checks)
        self._times = TestTimes(config) if times else None
        self._is_shuffled = is_shuffled(config)
        self._changes: Changes | None = None
        self._sums = (0, 0)
        self._started_session = False
        self._parts: list[tuple[list[Aggregate], list[Plan]]] = []
        self._steps: list[Step] = []
        self._stall_ms = read_settings().stall_ms
        self._is_call = False
        self._phase: _Phase | None = None
        self._deselected: set[str] = set()
        # What reports brought, by test:
        self._calls: dict[str, Mapping[str, Any]] = {}
        self._fixtures: dict[str, int] = {}
        self._failed: set[str] = set()
        self._not_saved = ""
        self._verification: list[str] = []  # what a second run showed

    # -- recording -------------------------------------------------------------------------

    def _record(self) -> Changes:
        if self._changes is None:
            self._started_session = not session.is_on
            session.start()
            _core.plans_allow(1.0)  # the same plans in every run, whatever they cost
            self._changes = Changes()
        return self._changes

    def _take_part(self, with_details: bool) -> None:
        """Ends a part of the phase: what was asked since the last one."""
        changes = self._record()
        executions, database_ns = changes.take()
        self._sums = (self._sums[0] + executions, self._sums[1] + database_ns)
        if with_details:
            self._parts.append((changes.aggregates(), changes.plans()))
        self._steps += changes.steps()

    def _begin_phase(self, is_call: bool = False) -> None:
        """What was asked since the last phase, between the two, counts for this one."""
        self._is_call = is_call
        self._record()
        self._parts = []
        self._steps = []
        self._sums = (0, 0)

    def _end_phase(self) -> _Phase:
        self._take_part(with_details=self._is_call)
        executions, database_ns = self._sums
        figures = self._figures(with_sites=False) if self._is_call else {}
        if any(one.executions > REPEATS for one in figures.values()):
            figures = self._figures(with_sites=True)
        stalls = self._longer_than(self._stall_ms)
        self._phase = _Phase(executions, database_ns, figures, stalls=stalls)
        return self._phase

    def _figures(self, with_sites: bool) -> dict[str, Figures]:
        aggregates = [aggregate for part, _ in self._parts for aggregate in part]
        plans = [plan for _, part in self._parts for plan in part]
        return figures_of(aggregates, self._rules, plans, with_sites, current_thread().name)

    def _longer_than(self, stall_ms: float) -> tuple[Step, ...]:
        """What an event loop ran for longer in one step, the longest first."""
        found = [step for step in self._steps if step.durations.max_ns > stall_ms * 1e6]
        return tuple(sorted(found, key=lambda step: -step.durations.max_ns))

    def queries(self) -> Queries:
        """The fixture's value."""
        self._record()
        return Queries(self)

    def parts(self) -> list[TestFigures]:
        """What the running phase has asked so far, part by part."""
        self._take_part(with_details=True)
        name = current_thread().name
        return [
            figures_of(part, self._rules, plans, test_thread=name) for part, plans in self._parts
        ]

    def so_far(self) -> TestFigures:
        """What the running phase has asked so far."""
        return add_figures(self.parts())

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, None]:
        self._begin_phase()
        yield
        self._end_phase()

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        self._begin_phase(is_call=True)
        outcome = yield
        phase = self._end_phase()
        marker = item.get_closest_marker("queryprof")
        phase.is_held = marker is None or marker.kwargs.get("baseline", True)
        if outcome.excinfo is None:
            message = (
                self._over_budget(item)
                or self._stalled(item, phase)
                or self._regressed(item, phase)
                or self._slower(item, phase)
            )
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
        if self._phase is not None and outcome.excinfo is None:
            outcome.get_result().queryprof = self._phase.plain()
            self._phase = None

    def pytest_unconfigure(self) -> None:
        if self._changes is not None:
            self._changes.close()
            self._changes = None
            if self._started_session:
                session.stop()

    # -- budgets and the baseline ----------------------------------------------------------

    def _over_budget(self, item: pytest.Item) -> str:
        marker = item.get_closest_marker("queryprof")
        if marker is None:
            return ""
        figures = self._figures(with_sites=True)
        unknown = sorted(set(marker.kwargs) - BUDGETS)
        if unknown or marker.args:
            return (
                f"queryprof marker of {item.nodeid}: {', '.join(unknown) or 'a value'} is no"
                f" budget; there are {', '.join(sorted(BUDGETS))}, each by name"
            )
        exceeded = []
        queries = marker.kwargs.get("max_queries")
        if queries is not None and count_queries(figures) > queries:
            exceeded.append((f"{count_queries(figures)} queries, max_queries={queries}:", figures))
        repeats = marker.kwargs.get("max_repeats")
        if repeats is not None:
            over = {s: f for s, f in figures.items() if f.repeats > repeats}
            if over:
                exceeded.append((f"repeated from one line, max_repeats={repeats}:", over))
        if marker.kwargs.get("no_full_scans"):
            over = {s: f for s, f in figures.items() if f.scans_a_large_table}
            if over:
                exceeded.append(("scans of large tables, no_full_scans:", over))
        return budget_message(item.nodeid, exceeded) if exceeded else ""

    def _stalled(self, item: pytest.Item, phase: _Phase) -> str:
        marker = item.get_closest_marker("queryprof")
        budget = marker.kwargs.get("max_stall_ms") if marker else None
        if budget is not None:
            stalls = self._longer_than(budget)
            return stall_message(item.nodeid, f"max_stall_ms={budget}", stalls) if stalls else ""
        if self._checks and "stalls" in self._rules.fail_on and phase.stalls:
            return stall_message(item.nodeid, f"stall_ms={self._stall_ms:g}", phase.stalls)
        return ""

    def _slower(self, item: pytest.Item, phase: _Phase) -> str:
        if self._times is None or not self._checks:
            return ""
        longest_ns = self._times.slower_than(item.nodeid, phase.database_ns)
        if longest_ns is None:
            return ""
        figures = self._figures(with_sites=True)
        return slower_message(item.nodeid, phase.database_ns, longest_ns, figures)

    def _regressed(self, item: pytest.Item, phase: _Phase) -> str:
        if self._baseline is None or not phase.is_held:
            return ""
        known = self._baseline.tests.get(item.nodeid)
        if known is None:
            phase.is_new = bool(phase.figures)
            return ""
        before = fold_names(figures_from(known))
        same = self._baseline.sqlite_version == sqlite3.sqlite_version
        found = deviations(before, fold_names(phase.figures), self._rules, same)
        if any(deviation.reasons for deviation in found):  # who reads it wants to know where
            after = fold_names(self._figures(with_sites=True))
            found = deviations(before, after, self._rules, same)
        worse = [deviation for deviation in found if deviation.reasons]
        phase.is_better = bool(found) and not worse
        phase.causes = tuple(cause_of(deviation, self._is_shuffled) for deviation in worse)
        return regression_message(item.nodeid, worse) if worse else ""

    # -- summing up ------------------------------------------------------------------------

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._deselected |= {item.nodeid for item in items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found: Mapping[str, Any] | None = getattr(report, "queryprof", None)
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
        if hasattr(self._config, "workerinput"):
            return
        if self._saves:
            try:
                write_baseline(self._path, Baseline(sqlite3.sqlite_version, self._merged()))
                if self._verifies and session.exitstatus in COMPLETE:
                    self._verify(session)
            except QueryprofError as error:
                self._not_saved = str(error)
        if self._times is not None:
            passed = {t: f["database_ns"] for t, f in self._calls.items() if t not in self._failed}
            self._times.keep(passed)
        if self._not_saved or self._measured_nothing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _measured_nothing(self) -> bool:
        """A gate that has seen no query where the baseline has some has not been a gate."""
        if self._baseline is None:
            return False
        expected = [t for t in self._calls if self._baseline.tests.get(t)]
        return bool(expected) and not any(self._calls[t]["executions"] for t in expected)

    def _verify(self, session: pytest.Session) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line("")
            reporter.write_line("queryprof: running the tests a second time ...")
        found = verify(self._config, self._passed(), self._rules)
        self._verification = verification_lines(found)
        if not found.is_stable:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _passed(self) -> dict[str, Any]:
        """What each test asked that passed and asked something."""
        return {
            nodeid: found["statements"]
            for nodeid, found in self._calls.items()
            if nodeid not in self._failed and found["statements"]
        }

    def _merged(self) -> dict[str, Any]:
        """The baseline to save: what passed now, and of the old what was not asked to run or did
        not run to its end.
        """
        try:
            old = read_baseline(self._path).tests
        except QueryprofError:
            old = {}  # there is none, or it is damaged: that is why it is written again
        files = {nodeid.partition("::")[0] for nodeid in self._calls}
        kept = {
            nodeid: statements
            for nodeid, statements in old.items()
            if nodeid in self._deselected | self._failed or nodeid.partition("::")[0] not in files
        }
        return {**kept, **self._passed()}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._shows or hasattr(self._config, "workerinput"):
            return
        out = terminalreporter
        out.section("queryprof")
        if not self._calls or not any(f["executions"] for f in self._calls.values()):
            write_line(out, "No test asked anything of a database.")
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
        if self._measured_nothing():
            write_line(
                out,
                "nothing was measured, though the baseline has queries: this check checked nothing",
                red=True,
            )
        better = sum(found["is_better"] for found in self._calls.values())
        new = sum(found["is_new"] for found in self._calls.values())
        if better:
            write_line(
                out,
                f"{better} tests ask less than the baseline says; accept that with:"
                " pytest --queryprof-save",
            )
        if new:
            write_line(
                out, f"{new} tests are not in the baseline; add them with: pytest --queryprof-save"
            )
