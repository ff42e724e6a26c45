"""`queryprof doctor --clean` makes the traces of ended processes, or reports them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import by_operation
from queryprof.collect.cleaning import RegionLeft, regions_left_behind
from queryprof.collect.reader import read_profile
from queryprof.collect.recorded_files import RecordedFiles
from queryprof.errors import TraceError

pytestmark = pytest.mark.once

WORKER = """
import os, sqlite3, sys
import queryprof
queryprof.install(sys.argv[1])
connection = sqlite3.connect(":memory:")
for number in range(int(sys.argv[2])):
    connection.execute("SELECT ?", (number,)).fetchall()
print("ready", flush=True)
sys.stdin.read()
"""
SELECT = ("SELECT ?", "execute")


@contextmanager
def worker(trace: str, executions: int = 3, program: str = WORKER) -> Iterator[int]:
    """Start a process that has executed its statements. It is killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", program, trace, str(executions)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def _nothing_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the regions that other tests leave meanwhile."""
    from queryprof.collect import cleaning

    everything = cleaning.readable_regions
    monkeypatch.setattr(
        cleaning,
        "readable_regions",
        lambda: (one for one in everything() if _is_ours(one, tmp_path)),
    )


def _is_ours(region: str, directory: Path) -> bool:
    from queryprof.region.identity import region_trace_path
    from queryprof.region.region import opened_region

    try:
        with opened_region(region) as found:
            return region_trace_path(found).startswith(str(directory))
    except TraceError:
        return False  # for example, a region of another version


def clean(*options: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the output of the command, which runs in this process."""
    from queryprof.cli.main import cli

    cli.main(["doctor", "--clean", *options], standalone_mode=False)
    return capsys.readouterr().out.splitlines()


def test_traces_are_made_of_what_was_killed(capsys: pytest.CaptureFixture[str]) -> None:
    with worker("x.qprof"):
        assert clean(capsys=capsys) == ["no ended process left a recording"]
    assert [one.trace for one in regions_left_behind()] == [f"{os.getcwd()}/x.qprof"]
    assert clean(capsys=capsys) == [f"written: {os.getcwd()}/x.qprof"]
    assert by_operation(read_profile("x.qprof"))[SELECT] == 3
    assert regions_left_behind() == []


def test_a_process_that_ends_during_the_report_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever its trace is recovered, the report prints so."""
    from queryprof.cli.main import cli
    from queryprof.collect import reader

    with worker("x.qprof") as pid:

        def found_after_its_end() -> RecordedFiles:
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            return RecordedFiles()

        with monkeypatch.context() as patched:
            patched.setattr(reader, "RecordedFiles", found_after_its_end)
            cli.main(["report", "x.qprof"], standalone_mode=False)
    assert f"recovered an unsaved recording: {os.getcwd()}/x.qprof" in capsys.readouterr().err


def test_what_has_no_place_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkdir("gone")
    with worker("gone/x.qprof"), worker("y.qprof", 4):
        shutil.rmtree("gone")
    made, left = clean(capsys=capsys)
    assert made == f"written: {os.getcwd()}/y.qprof"
    (region,) = regions_left_behind()
    assert left.startswith("not saved: 1 recording")
    why = f"of {os.getcwd()}/gone/x.qprof ({os.getcwd()}/gone is gone): {region.path}"
    assert left.endswith(why)
    os.unlink(region.path)
    assert clean(capsys=capsys) == ["no ended process left a recording"]


def test_files_that_are_no_recordings_are_not_left_ones(tmp_path: Path) -> None:
    notes = tmp_path / "queryprof-0-edf5beec27641d2e-18258-3aeebef3"
    notes.write_text("my notes")
    os.chmod(notes, 0o600)
    assert regions_left_behind() == []


def test_many_are_summed_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import queryprof.cli.clean as command

    found = [RegionLeft(f"/dev/shm/{n}", f"/gone/{n}.qprof", 1000 * n) for n in range(1, 13)]
    command._print_left(found)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    assert (
        lines[0] == "not saved: 1 recording (12 kB) of /gone/12.qprof (/gone is gone): /dev/shm/12"
    )
    assert lines[-1] == "not saved: the recordings of 2 other traces"
