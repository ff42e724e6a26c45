"""Every public function is called in every state of recording, including off: no crash, no hang,
and only queryprof's own exceptions.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("public_functions.py")
STATES = subprocess.run(
    [sys.executable, PROGRAM, "--list"], capture_output=True, text=True, check=True
).stdout.splitlines()


FORKED_INSIDE = """
import os, queryprof
from queryprof.recorder.session import session
attach = session.libraries.attach
def attach_and_fork():
    attach()
    pid = os.fork()  # a signal's handler, whose child returns from it
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
session.libraries.attach = attach_and_fork
queryprof.install("t.qprof")
queryprof.uninstall()
"""


def test_a_child_of_a_fork_in_the_midst_of_a_start_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED_INSIDE],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


STEP = 24
"""Each state makes one of 24 calls, and other states make others. At night, all are made."""


def calls_that_break(state: str, *selection: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, PROGRAM, state, *map(str, selection)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    bad = [line for line in done.stdout.splitlines() if not line.endswith(" ok")]
    words = ("Exception ignored", "Traceback", "Fatal")
    is_clean = done.stdout and not done.returncode and not any(w in done.stderr for w in words)
    return bad if is_clean else [*bad, done.stderr[-3000:]]


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_a_public_function_breaks_nothing(state: str) -> None:
    assert [] == calls_that_break(state, STATES.index(state), STEP)


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_no_public_function_breaks_anything(state: str) -> None:
    assert [] == calls_that_break(state)
