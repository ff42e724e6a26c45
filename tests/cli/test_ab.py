"""`queryprof ab`: two revisions of a real repository run in turns."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

from conftest import Run
from queryprof.cli.ab import run_order

PROGRAM = """
import sqlite3
c = sqlite3.connect(":memory:")
c.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
c.executemany("INSERT INTO t VALUES (?, ?)", [(i, i % 50) for i in range(500)])
def load(x):
    return c.execute("SELECT a FROM t WHERE b = ?", (x,)).fetchall()
for x in range({times}):
    load(x)
"""

pytestmark = pytest.mark.once


def git(*arguments: str) -> str:
    result = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


@pytest.fixture
def repository() -> None:
    """Create a repository with three revisions: 10 queries, then 12, then a comment."""
    git("init", "-q")
    Path("work").mkdir()
    for text in (
        PROGRAM.format(times=10),
        PROGRAM.format(times=12),
        PROGRAM.format(times=12) + "# done\n",
    ):
        Path("work/app.py").write_text(text)
        git("add", ".")
        git("commit", "-qm", "a change")


def test_turns_are_fair() -> None:
    """With A B B A, neither side is always first."""
    assert run_order(4) == [0, 1, 1, 0, 0, 1, 1, 0]


@pytest.mark.slow
@pytest.mark.usefixtures("repository")
def test_a_regression_between_revisions(queryprof: Run) -> None:
    """The exit status is 1, with the statement and its line. The work tree and its worktrees are
    unchanged.
    """
    before = (git("status", "--porcelain"), git("worktree", "list"), git("rev-parse", "HEAD"))
    result = queryprof("ab", "--base", "HEAD~2", "--runs", "1", "work/app.py")
    assert result.returncode == 1, result.stderr
    assert "load() work/app.py:7  10 -> 12 executions" in result.stdout
    result = queryprof("ab", "--base", "HEAD~1", "--runs", "2", "work/app.py")
    assert (result.returncode, "2 and 2 runs" in result.stdout) == (0, True), result.stdout
    assert before == (
        git("status", "--porcelain"),
        git("worktree", "list"),
        git("rev-parse", "HEAD"),
    )
    assert sorted(path.name for path in Path().iterdir()) == [".git", "work"]


@pytest.mark.usefixtures("repository")
@pytest.mark.slow
def test_from_inside_a_directory_with_a_setup(
    queryprof: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each revision, the command and the setup start in the current directory."""
    monkeypatch.chdir("work")
    setup = "sed 's/range(12)/range(15)/' app.py > made.py"
    result = queryprof("ab", "--base", "HEAD~2", "--runs", "1", "--setup", setup, "--", "made.py")
    assert "10 -> 15 executions" in result.stdout, result.stderr


@pytest.mark.usefixtures("repository")
def test_bad_input_is_one_line(queryprof: Run) -> None:
    """An unknown revision, uncommitted changes and failing commands give exit status 2."""
    Path("work/app.py").write_text(PROGRAM.format(times=99))
    for arguments, reported in {
        ("--base", "nowhere", "work/app.py"): "no such revision",
        ("--base", "HEAD~1", "work/app.py"): "commit them",
        ("--base", "HEAD~1", "--head", "HEAD", "missing.py"): "failed",
        ("--base", "HEAD~1", "--head", "HEAD", "--setup", "exit 3", "work/app.py"): "status 3",
        ("--base", "HEAD~1", "--head", "HEAD", "true"): "started no Python",
    }.items():
        result = queryprof("ab", "--runs", "1", *arguments)
        assert (result.returncode, len(result.stderr.splitlines())) == (2, 1), result.stderr
        assert reported in result.stderr
    assert git("worktree", "list").count("\n") == 1
    assert "range(99)" in Path("work/app.py").read_text()


def test_outside_of_a_repository(queryprof: Run) -> None:
    """The error is git's message, in one line."""
    result = queryprof("ab", "--base", "HEAD", "app.py")
    assert result.returncode == 2
    assert "not a git repository" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.repeats
def test_a_signal_ends_the_command_and_removes_the_checkouts(
    repository: None, tmp_path: Path, number: signal.Signals
) -> None:
    """The command has written its process id, and waits."""
    pids = tmp_path / "pids"
    program = (
        f"import os, time; open({str(pids)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    )
    Path("work/wait.py").write_text(program)
    git("add", ".")
    git("commit", "-qm", "waits")
    command = [sys.executable, "-m", "queryprof", "ab", "--base", "HEAD", sys.executable]
    process = subprocess.Popen([*command, "wait.py"], cwd="work", stdout=subprocess.PIPE)
    while not (pids.exists() and pids.read_text().endswith(" ")):
        assert process.poll() is None
        sleep(0.02)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == 128 + number
    assert len(git("worktree", "list").splitlines()) == 1
    (pid,) = pids.read_text().split()
    assert not Path("/proc", pid).exists()
