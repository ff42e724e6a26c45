"""queryprof without its compiled core (macOS, Windows, PyPy, no compiler).

Commands that read traces work. Functions that record do nothing, report that once, and let tests
pass. `make package` checks the wheel's own tags.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked import Forked

import queryprof
import queryprof.cli
import queryprof.hooks
from queryprof.cli.main import RECORDING

pytestmark = pytest.mark.once

REASON = "this installation cannot record: queryprof was installed without its core"

NOT_POSIX = """
import os, select, signal, sys
import asyncio, subprocess, tempfile  # they have parts of their own for such systems

GONE = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder())
for name in GONE:
    sys.modules.pop(name, None)
for module, names in (
    (os, "O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_DIRECTORY getuid geteuid getgid fork register_at_fork"
     " uname sysconf mkfifo mknod chown fchown fchmod killpg setsid getpgid statvfs posix_fallocate"
     " pread pwrite sched_getaffinity waitid SEEK_DATA SEEK_HOLE memfd_create pipe2"),
    (signal, "SIGKILL SIGHUP SIGQUIT SIGUSR1 SIGPIPE SIGALRM SIGXFSZ SIGCHLD pthread_sigmask"
     " sigpending sigwait setitimer SIG_BLOCK SIG_UNBLOCK"),
    (select, "poll epoll"),
):
    for one in names.split():
        if hasattr(module, one):
            delattr(module, one)
sys.argv = ["queryprof", *sys.argv[1:]]
from queryprof.cli.main import main
main()
"""
"""Run the command as on a system without POSIX."""

PROGRAM = """
import asyncio, sqlite3, sys, queryprof
queryprof.install("x.qprof")
con = sqlite3.connect(":memory:")
with queryprof.span("a") as span:
    con.execute("SELECT 1")
    span.set_status(200)
    assert span.figures() == (0, 0)

@queryprof.span("b")
async def work():
    return 3

assert asyncio.run(work()) == 3
with queryprof.profile("y.qprof") as recording:
    con.execute("SELECT 1")
assert (recording.path, recording.findings, recording.profile.aggregates) == (None, (), ())
assert "nothing was recorded" in str(recording)
recording.report(sys.stderr)
with queryprof.at_most(0, vm_steps=0, plans="no full scan"):
    con.execute("SELECT 1")
assert not queryprof.is_installed()
assert queryprof.loop_lag() == []
queryprof.instrument("sqlite3")
application = queryprof.WsgiMiddleware(lambda environ, start: [b"x"], server_timing=True)
assert list(application({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, print)) == [b"x"]
async def asgi(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})
async def send(message): sent.append(message)
sent = []
scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
asyncio.run(queryprof.AsgiMiddleware(asgi)(scope, None, send))
assert len(sent) == 2
queryprof.uninstall()
try:
    with queryprof.profile():
        raise ZeroDivisionError
except ZeroDivisionError:
    print("done")
"""

TESTS = """
import sqlite3, unittest
import pytest, queryprof as q

def execute():
    sqlite3.connect(":memory:").execute("SELECT 1").connection.close()

@pytest.mark.queryprof(max_queries=0, max_vm_steps=0, no_full_scans=True)
def test_marker():
    execute()

def test_fixture(queryprof):
    with queryprof.at_most(0, plans="no sort"):
        execute()

def test_figures(queryprof):
    assert queryprof.count("SELECT") == 1

def test_block():
    with q.at_most(0):
        execute()

class Case(q.TestCase):
    def test_assertion(self):
        with self.assertAtMost(0):
            execute()
"""


@pytest.fixture(scope="module")
def without_core(tmp_path_factory):
    """An environment in which the package has no compiled core, like its pure wheel."""
    place = tmp_path_factory.mktemp("without")
    compiled = shutil.ignore_patterns("*.so", "__pycache__")
    for package in (queryprof, queryprof.hooks, queryprof.cli):
        to = Path(place, *package.__name__.split("."))
        shutil.copytree(next(iter(package.__path__)), to, ignore=compiled, dirs_exist_ok=True)
    return {**os.environ, "PYTHONPATH": str(place), "NO_COLOR": "1", "COLUMNS": "80"}


@pytest.fixture
def run(without_core):
    def python(*arguments, **extra):
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**without_core, **extra},
            timeout=120,
            check=False,
        )

    return python


@pytest.fixture(scope="module")
def forked(without_core):
    environment = {**os.environ, **without_core}
    server = Forked("queryprof.cli.main", environment=environment)
    yield server
    server.end()


@pytest.fixture
def queryprof_in(run, forked, script, without_core):
    """Run a command with POSIX, or without it in its own process."""

    def command(is_posix, *arguments):
        if not is_posix:
            return run(script(NOT_POSIX, "not_posix.py"), *arguments)
        entry = "queryprof.cli.main:main"
        return forked.run(entry, ["queryprof", *arguments], {**os.environ, **without_core})

    return command


def test_a_program_runs_unrecorded_and_prints_the_reason_once(run, script):
    done = run(script(PROGRAM))
    assert (done.returncode, done.stdout) == (0, "done\n")
    lines = [
        line for line in done.stderr.splitlines() if line.startswith("queryprof: this installation")
    ]
    assert len(lines) == 1
    assert lines[0].startswith(f"queryprof: {REASON}")
    assert not list(Path().glob("*.qprof"))


def test_warnings_stay_what_they_are(run, script):
    assert run("-W", "error", script(PROGRAM)).returncode == 0


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        ((), ()),
        (("--queryprof-check",), ("-n", "2")),
        (("--queryprof-save",), ()),
        pytest.param(("--queryprof",), ("-n", "2"), marks=pytest.mark.slow),
    ],
)
@pytest.mark.repeats
def test_tests_pass_and_what_needs_figures_is_skipped(run, script, options, workers):
    tests = script(TESTS, "test_suite.py")
    plugins = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "queryprof.pytest_plugin,xdist.plugin",
    }
    done = run(
        "-m", "pytest", "--strict-markers", "-W", "error", *options, *workers, tests, **plugins
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed, 1 skipped" in done.stdout
    assert done.stdout.count(REASON) == 1
    assert not Path("queryprof-baseline.json").exists()


@pytest.fixture
def trace():
    import sqlite3

    con = sqlite3.connect("shop.db")
    con.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INT)")
    con.executemany("INSERT INTO sale (customer) VALUES (?)", ((n % 500,) for n in range(20_000)))
    con.commit()
    with queryprof.profile("t.qprof"):
        for number in range(20):
            con.execute("SELECT id FROM sale WHERE customer = ?", (number,)).fetchall()
    con.close()
    return "t.qprof"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (("report", "t.qprof"), "SELECT id FROM sale WHERE customer = ?"),
        (("report", "t.qprof", "--format", "json"), '"statement": "SELECT id FROM sale'),
        (("analyze", "t.qprof"), "Full table scan"),
        (("html", "t.qprof", "-o", "-"), "<!doctype html>"),
        (("compare", "t.qprof", "t.qprof"), "executions"),
        (("export", "t.qprof", "--format", "speedscope", "-o", "-"), "SELECT id FROM sale"),
        (("merge", "m.qprof", "t.qprof"), ""),
        (("doctor",), "core        none: queryprof was installed without its core"),
        (("--help",), "this installation cannot record"),
    ],
)
@pytest.mark.parametrize("is_posix", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.repeats
def test_what_reads_reads(queryprof_in, trace, command, found, is_posix):
    done = queryprof_in(is_posix, *command)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert found in done.stdout
    if command[0] == "html":
        assert "t.qprof" in done.stdout
    del trace


@pytest.mark.parametrize("command", ["report", "analyze"])
@pytest.mark.repeats
def test_what_reads_reads_without_posix(queryprof_in, trace, command):
    done = queryprof_in(False, command, trace)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_planner_is_used_if_a_process_can_be_limited(run, trace):
    assert (
        "CREATE INDEX sale_customer ON sale (customer)"
        in run("-m", "queryprof", "analyze", trace).stdout
    )


@pytest.mark.parametrize(
    ("is_posix", "commands"),
    [
        (True, sorted(RECORDING)),
        (False, ["run"]),
        pytest.param(False, sorted(RECORDING), marks=pytest.mark.slow),
    ],
)
def test_what_records_says_why_not(queryprof_in, is_posix, commands):
    for command in commands:
        done = queryprof_in(is_posix, command, "--unknown", "x")
        assert done.returncode == 2
        assert done.stderr.startswith(f"queryprof: {command}: {REASON}")
        assert len(done.stderr.splitlines()) == 1


def test_of_a_fleet_what_reads_is_there(run, queryprof_in):
    for command in ("ship", "prometheus"):
        done = queryprof_in(True, "fleet", command, "--unknown", "x")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(f"queryprof: {command}: {REASON}")
    assert run("-m", "queryprof", "fleet", "report", "--help").returncode == 0


def test_the_environment_starts_nothing(run):
    done = run(
        "-c", "import queryprof.recorder.autoload as a; a.start(); print('on')", QUERYPROF="1"
    )
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert len(done.stderr.splitlines()) == 1
    assert "queryprof was installed without its core" in done.stderr
