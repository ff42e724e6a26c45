"""The variable QUERYPROF starts recordings and names their traces."""

from __future__ import annotations

import os
import pstats
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import queryprof.startup
from conftest import Run, by_operation
from queryprof.collect.reader import read_profile
from queryprof.recorder.autoload import RunnerFacts

Script = Callable[[str], Path]

PROGRAM = "import sqlite3\nsqlite3.connect(':memory:').execute('SELECT 1').fetchall()\n"


def startup() -> str:
    return os.path.dirname(queryprof.startup.__file__)


@pytest.mark.parametrize(
    ("options", "name"),
    [(("-X", "dev"), "program"), (("-Werror", "-W", "ignore", "-B"), "program"), ((), "program")],
)
@pytest.mark.repeats
def test_a_trace_is_called_like_its_program(
    script: Script, options: tuple[str, ...], name: str
) -> None:
    path = script(PROGRAM)
    environment = {**os.environ, "QUERYPROF": "1", "PYTHONPATH": startup()}
    subprocess.run([sys.executable, *options, path], env=environment, check=True)
    (trace,) = Path().glob("*.qprof")
    assert trace.name.startswith(f"queryprof-{name}-")


@pytest.mark.parametrize(
    ("value", "names"), [("1", 1), ("True", 1), ("on", 1), ("0", 0), ("off", 0), ("no", 0)]
)
@pytest.mark.repeats
def test_words_that_switch_on_and_off(script: Script, value: str, names: int) -> None:
    path = script(PROGRAM)
    environment = {**os.environ, "QUERYPROF": value, "PYTHONPATH": startup()}
    subprocess.run([sys.executable, path], env=environment, check=True)
    assert len(os.listdir()) == names + 1
    assert len([*Path().glob("queryprof-program-*.qprof")]) == names


@pytest.mark.repeats
def test_a_word_that_means_nothing(script: Script) -> None:
    path = script(PROGRAM)
    environment = {**os.environ, "QUERYPROF": "stanby", "PYTHONPATH": startup()}
    done = subprocess.run(
        [sys.executable, path], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stderr == (
        "queryprof: this process is not recorded: QUERYPROF=stanby is not 1, standby, DIRECTORY/"
        " or NAME.qprof\n"
    )
    assert os.listdir() == [os.path.basename(path)]


FORKS = """
import os, sqlite3
def work(times):
    for number in range(times):
        sqlite3.connect(":memory:").execute("SELECT ?", (number,)).fetchall()
work(10)
if os.fork():
    os.wait()
else:
    work(3)
"""


@pytest.mark.parametrize("value", ["out/", "out"])
@pytest.mark.repeats
def test_a_directory_has_a_trace_of_each_process(script: Script, value: str) -> None:
    """They have the same names as with QUERYPROF=1."""
    path = script(FORKS)
    Path("out").mkdir()
    environment = {**os.environ, "QUERYPROF": value, "PYTHONPATH": startup()}
    subprocess.run([sys.executable, path], env=environment, check=True)
    traces = sorted(Path("out").iterdir())
    assert all(re.fullmatch(r"queryprof-program-\d+\.qprof", one.name) for one in traces)
    counts = [by_operation(read_profile(str(one)))["SELECT ?", "execute"] for one in traces]
    assert sorted(counts) == [3, 10]


@pytest.mark.parametrize("value", ["out/", "out", "out/x.qprof"])
@pytest.mark.repeats
def test_a_program_that_leaves_its_directory_before_it_forks(script: Script, value: str) -> None:
    path = script(FORKS.replace("if os.fork()", "os.chdir('/')\nif os.fork()"))
    Path("out").mkdir()
    environment = {**os.environ, "QUERYPROF": value, "PYTHONPATH": startup()}
    done = subprocess.run(
        [sys.executable, path], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    traces = sorted(Path("out").iterdir())
    counts = [by_operation(read_profile(str(one)))["SELECT ?", "execute"] for one in traces]
    assert sorted(counts) == [3, 10]


def test_a_path_of_its_own_below_run(queryprof: Run, script: Script) -> None:
    """QUERYPROF=path in a program's environment applies to that program, even below `run`."""
    inner = script(PROGRAM).rename("inner.py")
    path = script(
        "import os, subprocess, sys\n"
        "environment = {**os.environ, 'QUERYPROF': 'own.qprof'}\n"
        f"subprocess.run([sys.executable, {str(inner)!r}], env=environment, check=True)\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(read_profile("own.qprof"))["SELECT ?", "execute"] == 1
    assert not by_operation(read_profile("x.qprof"))


LIMITED = """
import os, resource, subprocess, sys
used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
limit = used + (int(sys.argv[1]) << 20)
code = "import sqlite3; c = sqlite3.connect(':memory:'); print(c.execute('SELECT 1').fetchall(), len(bytes(20 << 20)))"
os.environ["QUERYPROF"] = sys.argv[2]
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
os.execv(sys.executable, [sys.executable, "-c", code])
"""


@pytest.mark.parametrize(
    ("room_mib", "is_recorded"), [(50, False), (70, False), (90, False), (110, False), (200, True)]
)
@pytest.mark.repeats
def test_a_program_with_little_address_space_has_it_for_itself(
    script: Script, tmp_path: Path, room_mib: int, is_recorded: bool
) -> None:
    trace = tmp_path / "t.qprof"
    environment = {**os.environ, "PYTHONPATH": startup()}
    done = subprocess.run(
        [sys.executable, script(LIMITED), str(room_mib), trace],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"[(1,)] {20 << 20}\n")
    assert ("the address space limit (ulimit -v) leaves" in done.stderr) != is_recorded
    assert trace.exists() == is_recorded


@pytest.mark.parametrize(
    "value",
    ["", "7", "7:", "7::relative", "x::/tmp/", f"{'9' * 5000}::/tmp/", "::", "\udcff::/tmp/"],
)
def test_what_is_no_runner(value: str) -> None:
    """Such a process is recorded as usual, whoever has set the variable."""
    assert RunnerFacts.parse(value) is None


def test_a_runner_is_read_as_it_was_written() -> None:
    for runner in (RunnerFacts(7, "/tmp/a:b\n/"), RunnerFacts(8, "/x/", profiles_functions=True)):
        again = RunnerFacts.parse(runner.variable)
        assert again is not None
        assert vars(again) == vars(runner)


@pytest.mark.parametrize("word", ["", "x", "cprofil", "cprofile:", "1"])
def test_only_the_word_profiles_functions(word: str) -> None:
    runner = RunnerFacts.parse(f"7:{word}:/a/")
    assert runner is None or not runner.profiles_functions


def test_a_directory_that_is_not_there(script: Script) -> None:
    """A name with a trailing separator is a directory. No trace is written, and one line has the
    reason.
    """
    environment = {**os.environ, "QUERYPROF": "out/", "PYTHONPATH": startup()}
    done = subprocess.run(
        [sys.executable, script(PROGRAM)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stderr.splitlines()) == 1
    assert "no directory" in done.stderr
    assert [path.name for path in Path().iterdir()] == ["program.py"]


def test_functions_are_profiled_once(queryprof: Run, script: Script) -> None:
    """Only the process that `run` starts is profiled: not its children, nor a program that it
    becomes by exec.
    """
    inner = script(PROGRAM).rename("inner.py")
    path = script(
        "import os, subprocess, sys\n"
        f"subprocess.run([sys.executable, {str(inner)!r}], check=True)\n"
        "print(os.environ['QUERYPROF_RUNNER'].split(':')[1] == '')\n"
    )
    result = queryprof("run", "--no-report", "--cprofile", "-o", "x.qprof", path)
    assert (result.returncode, result.stdout) == (0, "True\n")
    functions = pstats.Stats("x.prof").stats  # type: ignore[attr-defined]
    files = {os.path.basename(file) for file, _, _ in functions}
    assert "program.py" in files
    assert "inner.py" not in files
