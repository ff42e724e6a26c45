"""A recording on a machine whose wall clock is wrong: counts and durations are right."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Run, by_operation
from queryprof.collect.reader import read_profile
from queryprof.core.wall_clock import LATEST_UNIX_NS, unix_ns

pytestmark = pytest.mark.once

YEAR_S = 31_556_952
LATEST_S = LATEST_UNIX_NS // 10**9

PROGRAM = """
import sqlite3
connection = sqlite3.connect("clock.db")
for number in range(5):
    connection.execute("SELECT ?", (number,)).fetchall()
"""


@pytest.fixture(scope="module")
def other_clock(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("clock") / "other_clock.so"
    source = Path(__file__).parents[1] / "other_clock.c"
    flags = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run(["gcc", *flags, str(source), "-o", str(library)], check=True)
    return str(library)


def seconds_ahead(unix_s: int) -> str:
    return str(unix_s - int(time.time()))


@pytest.mark.parametrize(
    ("unix_s", "is_kept"),
    [
        pytest.param(-YEAR_S, False, id="1969"),
        pytest.param(-200 * YEAR_S, False, id="1770"),
        pytest.param(YEAR_S, True, id="1971"),
        pytest.param(LATEST_S - YEAR_S, True, id="2115"),
        pytest.param(LATEST_S + YEAR_S, False, id="2117"),
        pytest.param(400 * YEAR_S, False, id="2370"),
    ],
)
@pytest.mark.repeats
def test_a_wrong_clock(other_clock: str, queryprof: Run, unix_s: int, is_kept: bool) -> None:
    """If a trace cannot hold the time, it has the time since the machine started."""
    env = {"LD_PRELOAD": other_clock, "CLOCK_AHEAD_S": seconds_ahead(unix_s)}
    before_ns = time.monotonic_ns()
    done = queryprof("run", "-o", "clock.qprof", "-c", PROGRAM, env=env)
    assert done.returncode == 0
    assert "5 executions of 1 statement" in " ".join(done.stderr.split())
    profile = read_profile("clock.qprof")
    assert by_operation(profile)["SELECT ?", "execute"] == 5
    process = profile.processes[0]
    since_ns = unix_s * 10**9 if is_kept else before_ns
    took_ns = time.monotonic_ns() - before_ns
    allowed_ns = took_ns + 2 * 10**9  # the test's own rounding to seconds, at both ends
    assert 0 <= process.start_unix_ns - since_ns + 10**9 <= allowed_ns
    assert 0 < process.end_unix_ns - process.start_unix_ns <= took_ns
    assert queryprof("report", "clock.qprof").returncode == 0


@pytest.mark.parametrize("found", [-1, LATEST_UNIX_NS + 1, None])
def test_the_time_since_the_start_is_used(
    monkeypatch: pytest.MonkeyPatch, found: int | None
) -> None:
    def time_ns() -> int:
        if found is None:
            raise OverflowError("timestamp too large to convert to C _PyTime_t")
        return found

    monkeypatch.setattr("queryprof.core.wall_clock.time_ns", time_ns)
    before_ns = time.monotonic_ns()
    assert before_ns <= unix_ns() <= time.monotonic_ns()


@pytest.mark.parametrize("found", [0, LATEST_UNIX_NS])
def test_the_wall_clock_is_used(monkeypatch: pytest.MonkeyPatch, found: int) -> None:
    monkeypatch.setattr("queryprof.core.wall_clock.time_ns", lambda: found)
    assert unix_ns() == found


@pytest.mark.parametrize("by_s", [-100 * YEAR_S, -3600, 3600, 56 * YEAR_S])
@pytest.mark.repeats
def test_a_clock_that_is_set_meanwhile(by_s: int) -> None:
    """A program's run time does not depend on the wall clock."""
    program = f"""
import sqlite3, time
import queryprof
from queryprof.core import wall_clock
queryprof.install("set.qprof")
sqlite3.connect(":memory:").execute("SELECT 1").fetchall()
wall_clock.time_ns = lambda: time.time_ns() + {by_s} * 10**9
queryprof.uninstall()
"""
    before_ns = time.monotonic_ns()
    subprocess.run([sys.executable, "-c", program], check=True)
    process = read_profile("set.qprof").processes[0]
    assert 0 < process.end_unix_ns - process.start_unix_ns <= time.monotonic_ns() - before_ns


def test_systems_without_linuxs_clocks_can_import_it() -> None:
    """They record nothing, and the program continues."""
    program = "import time; del time.CLOCK_BOOTTIME; import queryprof; queryprof.profile"
    subprocess.run([sys.executable, "-c", program], check=True)
