"""Scenarios: real processes that start at given times, recorded, merged and compared."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from conftest import Run, by_operation
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once

PROGRAM = """
import os, sqlite3, time

def connect():
    return sqlite3.connect(os.path.join("out", "x.db"), timeout=30)

def make():
    connect().execute("CREATE TABLE t (a)")

def insert(count, text):
    with connect() as c:
        for _ in range(count):
            c.execute("INSERT INTO t VALUES (?)", (text,))

def note(name):
    with open(os.path.join("out", f"{name}-{os.getpid()}.txt"), "a") as file:
        file.write(f"{time.monotonic()} ")

def slow():
    note("slow")
    time.sleep(0.5)

def fail():
    raise RuntimeError("the shop is closed")
"""
SCENARIO = """
output = "out"
[groups]
maker = 1
clients = 3
[[at]]
s = 0
group = "maker"
call = "program:make"
[[at]]
s = 0.4
group = "clients"
call = "program:insert"
arguments = [5, "x"]
"""


@pytest.fixture(autouse=True)
def _program() -> None:
    Path("program.py").write_text(PROGRAM)
    Path("s.toml").write_text(SCENARIO)


def test_every_process_is_in_the_trace(queryprof: Run) -> None:
    """Counts are exact, and each group is a span with its calls."""
    result = queryprof("lab", "scenario", "s.toml")
    assert result.returncode == 0, result.stderr
    profile = read_profile("out/scenario.qprof")
    assert len(profile.processes) == 4
    assert all(process.clean_end for process in profile.processes)
    assert by_operation(profile)["INSERT INTO t VALUES (?)", "execute"] == 15
    spans = {a.span for a in profile.aggregates}
    assert {"maker program:make", "clients program:insert"} <= spans
    report = queryprof("report", "--by", "site", "out/scenario.qprof")
    assert "insert() program.py:13" in report.stdout
    assert "out/scenario.qprof" in result.stderr


def test_the_second_run_starts_clean_and_can_be_compared_with_the_first(queryprof: Run) -> None:
    assert queryprof("lab", "scenario", "s.toml").returncode == 0
    Path("out/left").write_text("x")
    Path("out/scenario.qprof").rename("earlier.qprof")
    assert queryprof("lab", "scenario", "s.toml").returncode == 0
    assert not Path("out/left").exists()
    sides = ("earlier.qprof", "out/scenario.qprof")
    same = queryprof("compare", *sides, "--format", "json")
    assert same.returncode == 0, same.stderr
    verdicts = {c["metric"]: c["verdict"] for c in json.loads(same.stdout)["whole"]}
    assert verdicts["executions"] == "same"
    Path("s.toml").write_text(SCENARIO.replace("[5,", "[6,"))
    assert queryprof("lab", "scenario", "s.toml").returncode == 0
    worse = queryprof("compare", *sides)
    assert worse.returncode == 1, worse.stderr
    assert "15 -> 18 executions" in worse.stdout


@pytest.mark.slow
def test_lines_start_at_their_times(queryprof: Run) -> None:
    """They start in the order of time. A line that is due while another runs starts after it."""
    Path("s.toml").write_text(
        'output = "out"\n[groups]\na = 2\n'
        '[[at]]\ns = 0.6\ngroup = "a"\ncall = "program:slow"\n'
        '[[at]]\ns = 0.7\ngroup = "a"\ncall = "program:note"\narguments = ["last"]\n'
        '[[at]]\ns = 0\ngroup = "a"\ncall = "program:note"\narguments = ["first"]\n'
    )
    started = time.monotonic()
    assert queryprof("lab", "scenario", "s.toml").returncode == 0
    ended = time.monotonic()

    def times(name: str) -> dict[str, float]:
        """Return the times by process."""
        paths = Path("out").glob(f"{name}-*.txt")
        return {path.stem.partition("-")[2]: float(path.read_text()) for path in paths}

    first, slow, last = times("first"), times("slow"), times("last")
    assert len(first) == 2
    assert set(first) == set(slow) == set(last)
    for process, began in first.items():
        assert started < began
        # The start is at most as late as the first call; 0.6 s after it the next is due.
        assert slow[process] - started >= 0.6
        assert last[process] - slow[process] >= 0.5, "it ran until then"
        assert last[process] < ended


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("[groups]", "[groups", "s.toml: not valid TOML"),
        ("maker = 1", "maker = 0", "group maker must have 1 to 1000 processes, not 0"),
        ('group = "maker"', 'group = "makers"', "[[at]] 1: no group 'makers'"),
        ("maker = 1", '"../maker" = 1', "group '../maker': use only letters"),
        ('group = "maker"', 'group = ["maker"]', "[[at]] 1: no group ['maker']"),
        ("s = 0.4", "s = -1", "[[at]] 2: s must be seconds after the start, not -1"),
        ("program:make", "program.make", "call must be module:function, not 'program.make'"),
        ('arguments = [5, "x"]', "arguments = 5", "arguments must be a list, not 5"),
        ("output =", "outputs =", "unknown key 'outputs'; a scenario has output, groups and at"),
        ("program:make", "nowhere:make", "maker failed (exit status 3): No module named 'nowhere'"),
        ("program:make", "program:made", "has no attribute 'made'"),
        ("program:make", "program:fail", "maker failed (exit status 1): RuntimeError: the shop is"),
    ],
)
@pytest.mark.repeats
def test_errors_are_one_line(queryprof: Run, old: str, new: str, reported: str) -> None:
    """The error has the place and exit status 2, and no process keeps running."""
    Path("s.toml").write_text(SCENARIO.replace(old, new))
    result = queryprof("lab", "scenario", "s.toml")
    assert result.returncode == 2
    assert reported in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_directory_of_somebody_is_not_cleaned(queryprof: Run) -> None:
    """Only files of an earlier scenario are deleted."""
    Path("out").mkdir()
    Path("out/precious").write_text("x")
    result = queryprof("lab", "scenario", "s.toml")
    assert (result.returncode, "name another output directory" in result.stderr) == (2, True)
    assert Path("out/precious").read_text() == "x"
    result = queryprof("lab", "scenario", "none.toml")
    assert (result.returncode, "no such file" in result.stderr) == (2, True)


def test_the_only_process_dies_before_the_start(queryprof: Run) -> None:
    """The command reports it instead of waiting."""
    Path("dies.py").write_text("raise SystemExit('no configuration')\n")
    Path("one.toml").write_text(
        'output = "out"\n[groups]\nserver = 1\n'
        '[[at]]\ns = 0.1\ngroup = "server"\ncall = "dies:main"\n'
    )
    result = queryprof("lab", "scenario", "one.toml", timeout=60)
    assert result.returncode == 2
    assert "server failed" in result.stderr
    assert "no configuration" in result.stderr
