"""A service with running workers: its traces are read by name, by a pattern and by directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from collect.conftest import write_trace

from conftest import Run, by_operation
from queryprof import startup
from queryprof.collect.given_traces import traces_for_argument
from queryprof.collect.leftovers import LeftRecordings
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once

SERVICE = """
import os, sqlite3, sys
def work(times):
    connection = sqlite3.connect(":memory:")
    for number in range(times):
        connection.execute("SELECT ?", (number,)).fetchall()
times = 5
for worker in (7, 9):
    if not os.fork():
        times = worker
        break
work(times)
os.write(1, f"{os.getpid()} {times}\\n".encode())
sys.stdin.read()
if times == 5:
    os.wait(), os.wait()
"""
SELECT = ("SELECT ?", "execute")


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[dict[int, int]]:
    """Return process ids by how often each process has executed the query. The processes run until
    the test ends.
    """
    (tmp_path / "rec").mkdir()
    environment = {
        **os.environ,
        "QUERYPROF": "rec/shop.qprof",
        "PYTHONPATH": os.path.dirname(startup.__file__),
    }
    command = [sys.executable, "-c", SERVICE]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as service:
        assert service.stdout
        lines = [service.stdout.readline().split() for _ in range(3)]
        yield {int(times): int(pid) for pid, times in lines}
        service.communicate()


def executions(path: str) -> int:
    return by_operation(read_profile(path))[SELECT]


def test_a_running_worker_s_trace_has_its_name(pids: dict[int, int]) -> None:
    assert not list(Path("rec").glob("shop-*"))
    assert executions("rec/shop.qprof") == 5
    assert [executions(f"rec/shop-{pids[times]}.qprof") for times in (7, 9)] == [7, 9]


@pytest.mark.slow
def test_the_command_that_report_names(queryprof: Run, pids: dict[int, int]) -> None:
    """The command can be copied as printed. It merges the running processes, and works again when
    its output exists.
    """
    shown = queryprof("report", "rec/shop.qprof").stderr
    found = re.search(r"merge all of its traces: queryprof (merge .*)", shown)
    assert found
    for _ in range(2):
        command = f"{sys.executable} -m queryprof {found[1]}"
        subprocess.run(command, shell=True, check=True)
        assert executions("rec/shop-all.qprof") == 21


def test_a_directory_is_all_its_traces(queryprof: Run, pids: dict[int, int]) -> None:
    """They belong to running processes, and to one that was killed."""
    os.kill(pids[9], 9)
    result = queryprof("merge", "all.qprof", "rec")
    assert (result.returncode, result.stderr) == (0, "")
    assert executions("all.qprof") == 21
    assert executions(f"rec/shop-{pids[9]}.qprof") == 9


def test_nothing_of_such_a_name(queryprof: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for given, reason in (
        ("empty", "empty: no traces (*.qprof) in this directory"),
        ("shop-*.qprof", "shop-*.qprof: no trace matches this pattern"),
        ("gone.qprof", "gone.qprof: no such trace"),
    ):
        result = queryprof("merge", "all.qprof", given)
        assert result.returncode == 2
        assert result.stderr.startswith(f"queryprof: {reason}")
        assert not (tmp_path / "all.qprof").exists()


@pytest.mark.strange_traces
@pytest.mark.slow
def test_what_a_pattern_is_not(queryprof: Run, pids: dict[int, int], tmp_path: Path) -> None:
    """It ignores recordings in subdirectories, other files, and second names of a trace."""
    below = tmp_path / "rec" / "below"
    below.mkdir()
    write_trace(str(below / "a.qprof"))
    write_trace("rec/a.qprof")
    Path("rec/link.qprof").symlink_to("a.qprof")
    (tmp_path / "rec" / "folder.qprof").mkdir()
    Path("rec/shop.qprof.7-8-1.live").touch()
    for given in ("rec", "rec/", "rec/*", "re[c]/*.qprof"):
        Path("all.qprof").unlink(missing_ok=True)
        assert queryprof("merge", "all.qprof", given).returncode == 0
        profile = read_profile("all.qprof")
        assert sum(one.host == "x" for one in profile.processes) == 1
        assert by_operation(profile)[SELECT] == 21


@pytest.mark.slow
def test_directories_whose_names_are_patterns(queryprof: Run, pids: dict[int, int]) -> None:
    """The workers are found if the directory is a symbolic link, or has brackets in its name."""
    for name in ("l[1]", "link"):
        os.symlink("rec", name)
        for given in (f"{name}/", name):
            Path("all.qprof").unlink(missing_ok=True)
            assert queryprof("merge", "all.qprof", given).returncode == 0
            assert executions("all.qprof") == 21


@pytest.mark.strange_traces
def test_an_output_that_is_the_only_input_stays(queryprof: Run, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    write_trace("o/a.qprof")
    before = Path("o/a.qprof").read_bytes()
    result = queryprof("merge", "o/a.qprof", "o/", "o/")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert Path("o/a.qprof").read_bytes() == before


def test_a_recording_elsewhere_is_no_match(
    queryprof: Run, pids: dict[int, int], tmp_path: Path
) -> None:
    """It has the same name, but is in a sibling or parent directory."""
    for name in ("other", "rec/sub"):
        (tmp_path / name).mkdir()
        write_trace(f"{name}/a.qprof")
        assert [os.path.basename(one) for one in traces_for_argument(name)] == ["a.qprof"]


@pytest.mark.strange_traces
def test_names_that_look_like_patterns(tmp_path: Path) -> None:
    (tmp_path / "l[1]").mkdir()
    for name in ("l[1]/b.qprof", "l[1]/a.qprof", "a[1].qprof"):
        write_trace(name)
    assert traces_for_argument("a[1].qprof") == ["a[1].qprof"]
    assert traces_for_argument("l[1]") == ["l[1]/a.qprof", "l[1]/b.qprof"]


def test_a_killed_process_that_left_a_copy_alone(queryprof: Run, tmp_path: Path) -> None:
    """Its checkpoint next to the trace is found even without shared memory."""
    names = ["a.qprof", "b.qprof"]
    (tmp_path / "a.qprof.77.0123456789ab.live").touch()
    leftovers = LeftRecordings()
    assert [leftovers.may_have_recordings_of(name) for name in names] == [True, False]
    assert leftovers.may_have_recordings_of("a-77.qprof")


def test_a_killed_process_whose_trace_has_a_number_in_its_name(
    queryprof: Run, tmp_path: Path
) -> None:
    """It belongs to no other process of its recording."""
    (tmp_path / "rec").mkdir()
    environment = {
        **os.environ,
        "QUERYPROF": "rec/day-2024.qprof",
        "PYTHONPATH": os.path.dirname(startup.__file__),
    }
    code = (
        "import os, sqlite3\n"
        "connection = sqlite3.connect(':memory:')\n"
        "for n in range(7): connection.execute('SELECT ?', (n,)).fetchall()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode
    assert queryprof("merge", "all.qprof", "rec").returncode == 0
    assert executions("all.qprof") == 7


@pytest.mark.strange_traces
def test_an_output_that_is_there(queryprof: Run, tmp_path: Path) -> None:
    """It may be an input. Another single trace does not replace it."""
    for name in ("a.qprof", "b.qprof"):
        write_trace(name)
    before = Path("a.qprof").read_bytes()
    for given in (("b.qprof",), ("b.*",)):
        assert queryprof("merge", "a.qprof", *given).returncode == 2
        assert Path("a.qprof").read_bytes() == before
    assert queryprof("merge", "a.qprof", "a.qprof", "b.qprof").returncode == 0
    assert len(read_profile("a.qprof").processes) == 2
    assert queryprof("merge", "a.qprof", "a.qprof").returncode == 0
