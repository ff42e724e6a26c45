"""Shared fixtures: no test leaves recording on, and ways to record and to run programs."""

from __future__ import annotations

import gc
import operator
import os
import pkgutil
import signal
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from forked import Forked
from hypothesis import settings

import queryprof as package
from invariants import impossible
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.core import _core
from queryprof.errors import QueryprofError
from queryprof.hooks.drivers.driver import Driver
from queryprof.model import Aggregate, Profile
from queryprof.recorder.session import session
from queryprof.region.identity import region_trace_path
from queryprof.region.region import opened_region
from queryprof.region.region_files import is_living, memory_directories

pytest_plugins = "pytester"
pytest.register_assert_rewrite("analysis.by_hand")
NOWHERE = ("/proc/nowhere/", "/proc/no/")
"""A place where no trace can be written: recordings stay in memory."""
collect_ignore = ["programs/shop"]  # run by pytest inside of a test

# Programs under test inherit what this one ignores: SIGINT, where a shell has started it with "&".
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )

# How long an example takes depends on the machine.
settings.register_profile("anywhere", deadline=None, print_blob=True)
settings.load_profile("anywhere")

WIDE = "1000"
"""The width of the terminal where a test does not set one."""

EXAMPLES = int(os.environ.get("QUERYPROF_EXAMPLES", "100"))
"""Number of random programs per test."""

QUERYPROF = Path(sys.executable).with_name("queryprof")


@pytest.hookimpl(tryfirst=True)  # before pytest chooses tests by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all but the first set of parameters of a test that `repeats` as slow, and allow the
    tests inside a test to leave connections open.
    """
    known = set()
    for item in items:
        if "pytester" in getattr(item, "fixturenames", ()):  # these tests close nothing
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"))
        name = item.nodeid.partition("[")[0]
        if item.get_closest_marker("repeats") and name in known:
            item.add_marker(pytest.mark.slow)
        known.add(name)


@pytest.fixture(autouse=True)
def _recording_is_off() -> Iterator[None]:
    """Every test starts and ends with nothing recorded and nothing patched."""
    assert not session.is_on
    yield
    was_on = session.is_on
    session.stop()
    _core.set_muted(False)
    assert not was_on, "the test left recording on"


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has its own working directory and none of the developer's settings. Its terminal
    is so wide that no line breaks: the place of a break depends on the machine's paths.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", WIDE)
    for name in list(os.environ):
        if name.startswith("QUERYPROF"):
            monkeypatch.delenv(name)
    # pytest starts three times as fast as with every installed plugin.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "queryprof.pytest_plugin,xdist.plugin")
    # The tests' own code is the program's, also where pytest-xdist runs them from a string.
    monkeypatch.setenv("QUERYPROF_ROOTS", str(Path(__file__).parent))


CHECKS_TRACES = bool(os.environ.get("QUERYPROF_CHECK_TRACES"))
LARGEST_CHECKED = 4_000_000
"""The size (bytes) of the largest trace that is checked."""


@pytest.fixture(autouse=True)
def _reports_are_possible(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Every figure in a trace that a test has left is possible. Checked only at night, because it
    takes long.
    """
    yield
    if not CHECKS_TRACES or request.node.get_closest_marker("strange_traces"):
        return
    for path in sorted(tmp_path.glob("*.qprof")):
        if path.is_file() and 0 < path.stat().st_size <= LARGEST_CHECKED:
            try:
                profile = read_profile(str(path))
            except QueryprofError:
                continue  # the test's own file, under the name of a trace
            wrong = list(impossible(Report(profile)))
            assert not wrong, (path.name, wrong)


@pytest.fixture
def installed_plugins(_own_directory: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest finds its plugins by itself, as it does for a person."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collections during the tests skip the objects of the modules imported so far."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Newer Pythons warn of unclosed objects when these are collected: collect them in their own
    test.
    """
    yield
    if sys.version_info >= (3, 13):
        gc.collect()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove what the tests' programs have left in shared memory."""
    base = str(session.config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
    for directory in filter(os.path.isdir, memory_directories()):
        for name in os.listdir(directory):
            path = os.path.join(directory, name)
            if name.startswith("queryprof-"):
                with suppress(QueryprofError, ValueError), opened_region(path) as region:
                    if region_trace_path(region).startswith((base, *NOWHERE)) and not is_living(
                        region
                    ):
                        os.unlink(path)


Run = Callable[..., subprocess.CompletedProcess[str]]


IN_PROCESSES_OF_THEIR_OWN = {"run", "attach", "mcp"}
"""Commands that must run in their own process."""

USED_BY_COMMANDS = {
    *("analysis", "cli", "collect", "confined", "fleet", "proof", "report", "sql", "statistics"),
    *("trace", "tuning"),
}


@pytest.fixture(scope="session")
def _commands() -> Iterator[Callable[[], Forked]]:
    """The server that forks for a command. Its first use starts it."""
    servers = []

    def server() -> Forked:
        if not servers:
            own = pkgutil.walk_packages(package.__path__, "queryprof.")
            names = [m.name for m in own if m.name.split(".")[1] in USED_BY_COMMANDS]
            others = ("duckdb", "numpy", "rich.console", "rich.progress", "rich.table")
            names += [name for name in others if find_spec(name.partition(".")[0])]
            servers.append(Forked(*names))
        return servers[0]

    yield server
    for one in servers:
        one.end()


@pytest.fixture
def queryprof(_commands: Callable[[], Forked]) -> Run:
    """Run the command line: queryprof("report", "x.qprof", env={...})."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        extra = options.pop("env", {})
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": WIDE, **extra}  # type: ignore[dict-item]
        command = [str(QUERYPROF), *map(str, arguments)]
        options.setdefault("timeout", 120)
        is_simple = options.keys() <= {"cwd", "input", "timeout"}
        if is_simple and not IN_PROCESSES_OF_THEIR_OWN & set(command[1:2]):
            server = _commands()
            if server.can_run(environment):
                entry = "queryprof.cli.main:main"
                return server.run(entry, command, environment, **options)  # type: ignore[arg-type]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            **options,  # type: ignore[call-overload]
        )

    return run


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    """Write a program to a file in the test's directory: script("import ...")."""

    def write(text: str, name: str = "program.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def look(found: object) -> tuple[int, bool]:
    """Return the identity of an object, and whether it is measured in place."""
    function = found.__func__ if isinstance(found, classmethod) else found
    return id(found), _core.is_measured_in_place(function)


def owned(module: types.ModuleType, driver: Driver) -> dict[tuple[str, str], tuple[int, bool]]:
    """Return the attributes of a driver's types and module that have measured names."""
    found = {}
    for name, methods in driver.types.items():
        owner = operator.attrgetter(name)(module)
        found |= {(name, method): look(vars(owner).get(method)) for method in methods}
    for name in driver.functions:
        home, _, function = name.rpartition(".")
        owner = operator.attrgetter(home)(module) if home else module
        found["", name] = look(vars(owner).get(function))
    return found


def by_operation(profile: Profile, figure: str = "count") -> Counter[tuple[str, str]]:
    """Return a figure by (statement, operation)."""
    sums: Counter[tuple[str, str]] = Counter()
    for aggregate in profile.aggregates:
        sums[aggregate.statement, aggregate.operation] += getattr(aggregate, figure)
    return sums


def only(profile: Profile, statement: str, operation: str = "execute") -> Aggregate:
    """Return the only aggregate of a statement and operation."""
    found = [a for a in profile.aggregates if a.statement == statement and a.operation == operation]
    assert len(found) == 1, f"{len(found)} aggregates of {statement} {operation}"
    return found[0]


def traces_in(directory: Path) -> list[Profile]:
    """Return the profiles of all traces in a directory, by name."""
    return [read_profile(str(path)) for path in sorted(directory.glob("*.qprof"))]
