"""A service whose workers run: its traces are read by name, by a pattern and by their directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from keep.conftest import write_trace

import queryprof.startup
from conftest import Run, by_operation
from queryprof.collect.reader import read_profile

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
    """By how often each process has executed the query: its id. They run until the test ends."""
    (tmp_path / "rec").mkdir()
    environment = {
        **os.environ,
        "QUERYPROF": "rec/shop.qprof",
        "PYTHONPATH": os.path.dirname(queryprof.startup.__file__),
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


def test_the_command_that_report_names(queryprof: Run, pids: dict[int, int]) -> None:
    """It adds up what runs, as it stands there, and again when its output is there."""
    shown = queryprof("report", "rec/shop.qprof").stderr
    found = re.search(r"all together: queryprof (merge .*)", shown)
    assert found
    for _ in range(2):
        command = f"{sys.executable} -m queryprof {found[1]}"
        subprocess.run(command, shell=True, check=True)
        assert executions("rec/shop-all.qprof") == 21


def test_a_directory_is_all_its_traces(queryprof: Run, pids: dict[int, int]) -> None:
    """Those of processes that run, and of one that was killed."""
    os.kill(pids[9], 9)
    result = queryprof("merge", "all.qprof", "rec")
    assert (result.returncode, result.stderr) == (0, "")
    assert executions("all.qprof") == 21
    assert executions(f"rec/shop-{pids[9]}.qprof") == 9


def test_nothing_of_such_a_name(queryprof: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for given, reason in (
        ("empty", "empty: there are no traces (*.qprof) in this directory"),
        ("shop-*.qprof", "shop-*.qprof: no trace has such a name"),
        ("gone.qprof", "gone.qprof: there is no such trace"),
    ):
        result = queryprof("merge", "all.qprof", given)
        assert result.returncode == 2
        assert result.stderr.startswith(f"queryprof: {reason}")
        assert not (tmp_path / "all.qprof").exists()


@pytest.mark.strange_traces
def test_what_a_pattern_is_not(queryprof: Run, pids: dict[int, int], tmp_path: Path) -> None:
    """Recordings of directories below, files of other kinds, and second names of a trace."""
    below = tmp_path / "rec" / "below"
    below.mkdir()
    write_trace(str(below / "a.qprof"))
    write_trace("rec/a.qprof")
    Path("rec/link.qprof").symlink_to("a.qprof")
    (tmp_path / "rec" / "folder.qprof").mkdir()
    Path("rec/shop.qprof.7-8-1.live").touch()
    for given in ("rec", "rec/", "rec/*", "re[c]/*.qprof"):
        assert queryprof("merge", "--force", "all.qprof", given).returncode == 0
        profile = read_profile("all.qprof")
        assert sum(one.host == "x" for one in profile.processes) == 1
        assert by_operation(profile)[SELECT] == 21


def test_directories_whose_names_are_patterns(queryprof: Run, pids: dict[int, int]) -> None:
    """Of a directory that is given by a link, or has brackets in its name, workers are read, too."""
    for name in ("l[1]", "link"):
        os.symlink("rec", name)
        for given in (f"{name}/", name):
            assert queryprof("merge", "--force", "all.qprof", given).returncode == 0
            assert executions("all.qprof") == 21


@pytest.mark.strange_traces
def test_an_output_that_is_the_only_input_stays(queryprof: Run, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    write_trace("o/a.qprof")
    before = Path("o/a.qprof").read_bytes()
    result = queryprof("merge", "--force", "o/a.qprof", "o/", "o/")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert Path("o/a.qprof").read_bytes() == before
