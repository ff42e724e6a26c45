"""All traces of a directory are read as one: of running, ended and killed processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import Run

pytestmark = pytest.mark.once

SERVICE = "traces"

WORKER = """
import os, sqlite3, sys
import queryprof
queryprof.install(sys.argv[1])
connection = sqlite3.connect(":memory:")
for _ in range(int(sys.argv[2])):
    connection.execute("SELECT 1").fetchall()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def worker(name: str, executions: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that has executed its statements, and ends when its input does."""
    command = [sys.executable, "-c", WORKER, f"{SERVICE}/{name}.qprof", str(executions)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            if process.poll() is None:
                process.communicate()


@pytest.fixture
def service() -> Iterator[None]:
    """Make a directory with the files of three processes: running, ended, and killed."""
    os.mkdir(SERVICE)
    with worker("ended", 2):
        pass
    with worker("killed", 30) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with worker("runs", 400):
        yield


def executions(queryprof: Run, given: str) -> tuple[int, str]:
    """Return the number of executions of the statement, and stderr."""
    result = queryprof("report", given, "--format", "json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["views"]["statement"]
    (statement,) = [row for row in rows if row["name"] == "SELECT ?"]
    return statement["totals"]["executions"], result.stderr


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("given", [f"{SERVICE}/", SERVICE, f"{SERVICE}/*.qprof"])
@pytest.mark.repeats
def test_all_processes_are_counted(queryprof: Run, given: str) -> None:
    """The output has their number by state. A second run prints the same: reading
    removes nothing.
    """
    for _ in range(2):
        count, message = executions(queryprof, given)
        assert count == 432
        assert message == (
            f"queryprof: {given}: 3 traces of 3 processes: 1 running, 1 ended, 1 killed or in"
            " another container\n"
        )


@pytest.mark.usefixtures("service")
def test_other_commands_read_directories(queryprof: Run) -> None:
    """Findings and the page work. The page is next to the directory."""
    result = queryprof("analyze", SERVICE)
    assert result.returncode == 0, result.stderr
    assert "still running" in result.stdout
    result = queryprof("html", f"{SERVICE}/")
    assert result.returncode == 0, result.stderr
    page = Path(f"{SERVICE}.html").read_text()
    assert f"<title>queryprof: {SERVICE}</title>" in page
    result = queryprof("html", f"{SERVICE}/*.qprof")
    assert result.returncode == 2
    assert (
        result.stderr
        == f"queryprof: {SERVICE}/*.qprof: is a pattern; use -o to name the output file\n"
    )
    assert not Path(f"{SERVICE}/*.html").exists()


@pytest.mark.usefixtures("service")
@pytest.mark.slow
def test_unreadable_traces_are_reported(queryprof: Run) -> None:
    """The rest is counted, and nothing of the unreadable trace."""
    ended = Path(SERVICE, "ended.qprof").read_bytes()
    Path(SERVICE, "a.qprof").write_bytes(ended[: len(ended) // 2])
    Path(SERVICE, "b.qprof").write_text("no trace\n")
    count, message = executions(queryprof, SERVICE)
    assert count == 432
    assert "5 traces of 3 processes" in message
    text = queryprof("report", SERVICE, env={"COLUMNS": "400"}).stdout
    assert "skipped, and missing in all figures: traces/a.qprof" in text
    assert "skipped, and missing in all figures: traces/b.qprof" in text


@pytest.mark.usefixtures("service")
@pytest.mark.slow
def test_a_process_in_two_traces_is_reported(queryprof: Run) -> None:
    """A merged trace next to its parts counts with each, as in `merge`."""
    assert queryprof("merge", f"{SERVICE}/all.qprof", SERVICE).returncode == 0
    count, message = executions(queryprof, SERVICE)
    assert count == 864
    assert "3 processes are in several traces and are counted once per trace\n" in message


def test_a_name_that_looks_like_a_pattern(queryprof: Run) -> None:
    """The name is the trace's own, even if there is only the memory of a killed process."""
    os.mkdir(SERVICE)
    with worker("w[1]*", 3) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    count, message = executions(queryprof, f"{SERVICE}/w[1]*.qprof")
    assert count == 3
    assert message.startswith("queryprof: recovered an unsaved recording: ")
    assert Path(f"{SERVICE}/w[1]*.qprof").is_file()


def test_directories_without_traces(queryprof: Run) -> None:
    """If no trace can be read, the error is one line."""
    os.mkdir(SERVICE)
    result = queryprof("report", SERVICE)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"queryprof: {SERVICE}: no traces (*.qprof) in this directory\n"
    Path(SERVICE, "b.qprof").write_text("no trace\n")
    result = queryprof("report", SERVICE)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"queryprof: {SERVICE}/b.qprof: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("service")
@pytest.mark.slow
def test_a_directory_is_merged_into_itself_as_often_as_one_likes(queryprof: Run) -> None:
    """The merged trace does not count as the trace of a process."""
    for _ in range(3):
        merged = queryprof("merge", f"{SERVICE}/all.qprof", SERVICE)
        assert merged.returncode == 0, merged.stderr
        assert executions(queryprof, f"{SERVICE}/all.qprof")[0] == 432
