"""The entry point of the pytest plugin: its options, marker and fixture.

pytest imports this module in every run where queryprof is installed. It therefore imports nothing
until it is used; queryprof/pytest_plugin/recorder.py does the work.
"""

from __future__ import annotations

import argparse

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from queryprof.pytest_plugin.queries import CountedQueries
    from queryprof.pytest_plugin.recorder import TestRecorder

NAME = "queryprof-recorder"
ABSENCE = pytest.StashKey[str]()
"""The stash's key for the reason why nothing can be recorded here."""

GATES = frozenset({"counts", "plans", "vmsteps", "stalls", "time"})
"""Values of queryprof_fail_on that compare figures. The other values are findings."""

OPTIONS = ("queryprof", "queryprof_save", "queryprof_save_to", "queryprof_check")
"""Options that start a recording."""

TOO_LATE = (
    "queryprof: the marker was added while the test ran, so queryprof did not count the queries of"
    " the test: add the marker in a fixture, or in pytest_runtest_setup"
)

MARKER = (
    "queryprof(max_queries, max_repeats, max_rows, max_vm_steps, plans, no_full_scans,"
    " max_stall_ms, max_lock_wait_ms, max_transaction_ms, max_growth, sizes, baseline): limit the"
    " test's database work. Arguments with max_ are upper limits. plans and no_full_scans exclude"
    " scans and sorts. max_growth runs the test on more and more data, made by its fixture"
    " populate. baseline=False exempts the test from the baseline."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("queryprof", "tests' work with the database")
    group.addoption("--queryprof", action="store_true", help="show the tests with the most queries")
    group.addoption(
        "--queryprof-save",
        action="store_true",
        help="write each test's queries to the baseline (queryprof-baseline.json)",
    )
    group.addoption(
        "--queryprof-verify",
        action="store_true",
        help="with --queryprof-save: run the tests a second time, and fail if their queries differ",
    )
    group.addoption("--queryprof-save-to", metavar="FILE", help=argparse.SUPPRESS)
    group.addoption(
        "--queryprof-check",
        action="store_true",
        help="fail tests with more queries than their baseline",
    )
    parser.addini("queryprof_baseline", "path of the baseline", default="queryprof-baseline.json")
    parser.addini(
        "queryprof_fail_on",
        "figures that must not get worse: counts, plans, vmsteps, stalls, time. Findings that fail"
        " a test: n_plus_one, full_scan",
        type="args",
        default=["counts", "plans", "vmsteps"],
    )
    parser.addini(
        "queryprof_ignore",
        "patterns of statements to ignore, matched from their start",
        type="linelist",
        default=[],
    )
    parser.addini(
        "queryprof_vmsteps_tolerance",
        "percent that VM steps may rise between different versions of SQLite",
        default="5",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if config.getoption("queryprof_verify") and not config.getoption("queryprof_save"):
        raise pytest.UsageError("queryprof: --queryprof-verify needs --queryprof-save")
    # Check only the command line: with --queryprof-check in addopts, --queryprof-save renews a
    # baseline.
    if {"--queryprof-save", "--queryprof-check"} <= set(map(str, config.invocation_params.args)):
        raise pytest.UsageError(
            "queryprof: --queryprof-save writes the baseline that --queryprof-check reads: use"
            " only one"
        )
    is_chosen = any(config.getoption(option) for option in OPTIONS)
    if is_chosen or set(config.getini("queryprof_fail_on")) - GATES:
        _recorder(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any(item.get_closest_marker("queryprof") for item in items):
        _recorder(config)


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Measure a test that got its marker after the collection, from a fixture or another plugin."""
    is_marked = item.get_closest_marker("queryprof") is not None
    # If there is a recorder, it measures all tests.
    known = item.config.pluginmanager.get_plugin(NAME)
    recorder = _recorder(item.config) if is_marked and known is None else None
    if recorder is not None:
        yield from recorder.measured_call(item)
        return
    outcome = yield
    came_late = not is_marked and item.get_closest_marker("queryprof") is not None
    if came_late and known is None and outcome.excinfo is None:
        outcome.force_exception(pytest.fail.Exception(TOO_LATE, pytrace=False))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test with max_growth on more and more data."""
    __tracebackhide__ = True
    markers = pyfuncitem.iter_markers("queryprof")
    if not any("max_growth" in marker.kwargs for marker in markers):
        return None
    if _recorder(pyfuncitem.config) is None:
        return None
    from queryprof.pytest_plugin.growth import run_on_growing_data

    return run_on_growing_data(pyfuncitem)


def _recorder(config: pytest.Config) -> TestRecorder | None:
    """Return the run's recorder, created on first use; None if nothing can be recorded here."""
    recorder: TestRecorder | None = config.pluginmanager.get_plugin(NAME)
    if recorder is None:
        from queryprof.core.absence import absence_reason

        if reason := absence_reason():
            config.stash[ABSENCE] = reason
            return None
        from queryprof.errors import QueryprofError
        from queryprof.pytest_plugin.recorder import TestRecorder

        try:
            recorder = TestRecorder(config, GATES)
        except QueryprofError as error:
            raise pytest.UsageError(f"queryprof: {error}") from error
        config.pluginmanager.register(recorder, NAME)
    return recorder


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report from a pytest-xdist worker to the first process that nothing can be recorded."""
    worker: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    reason = session.config.stash.get(ABSENCE, "")
    if worker is not None and reason:
        worker["queryprof_absence"] = reason


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Store the reason that a worker reports."""
    reason = getattr(node, "workeroutput", {}).get("queryprof_absence", "")
    if reason:
        node.config.stash[ABSENCE] = reason


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print that nothing was recorded, if a recording was requested but is impossible."""
    reason = config.stash.get(ABSENCE, "")
    if reason:
        terminalreporter.section("queryprof")
        terminalreporter.write_line(f"this installation cannot record: {reason}")


@pytest.fixture
def queryprof(request: pytest.FixtureRequest) -> CountedQueries:
    """The queries of the test so far: `.queries`, `.count()`, `.at_most(3)`."""
    recorder = _recorder(request.config)
    if recorder is None:
        from queryprof.pytest_plugin.queries import queries_without_recording

        return queries_without_recording()
    return recorder.queries()
