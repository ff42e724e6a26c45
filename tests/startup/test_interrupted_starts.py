"""An interrupt while a recorded Python starts ends it like a bare one: by the signal."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import queryprof.startup

STARTUP = next(iter(queryprof.startup.__path__))
PTH = Path(__file__).parents[2] / "queryprof" / "startup" / "queryprof.pth"

INTERRUPTING = """
import os, signal
def start():
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.fixture
def interrupted(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the recording's start is interrupted."""
    package = tmp_path / "queryprof" / "recorder"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "autoload.py").write_text(INTERRUPTING)
    return {**os.environ, "QUERYPROF": "x.qprof", "PYTHONPATH": str(tmp_path)}


def test_below_run(interrupted: dict[str, str], tmp_path: Path) -> None:
    environment = {**interrupted, "PYTHONPATH": os.pathsep.join([STARTUP, str(tmp_path)])}
    done = subprocess.run(
        [sys.executable, "-c", "print(1)"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_by_the_environment(interrupted: dict[str, str]) -> None:
    """An installation puts this line into site-packages."""
    command = [sys.executable, "-c", f"exec({PTH.read_text()!r}); print(1)"]
    done = subprocess.run(command, env=interrupted, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("startup", [STARTUP, ""], ids=["below run", "by the environment"])
def test_the_first_process_of_a_container(
    interrupted: dict[str, str], tmp_path: Path, startup: str
) -> None:
    """Its own signals do not end it, but it does not continue either."""
    code = "print(1)" if startup else f"exec({PTH.read_text()!r}); print(1)"
    environment = {**interrupted, "PYTHONPATH": os.pathsep.join([startup or ".", str(tmp_path)])}
    command = ["unshare", "--pid", "--fork", sys.executable, "-c", code]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command[:3], "true"], check=False).returncode
    ):
        pytest.skip("no namespaces here")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")
