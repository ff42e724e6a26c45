"""What the variable QUERYPROF switches on, and how a trace is called."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import queryprof.hooks.startup

Script = Callable[[str], Path]

PROGRAM = "import sqlite3\nsqlite3.connect(':memory:').execute('SELECT 1').fetchall()\n"


def startup() -> str:
    return os.path.dirname(queryprof.hooks.startup.__file__)


@pytest.mark.parametrize(
    ("options", "name"),
    [(("-X", "dev"), "program"), (("-Werror", "-W", "ignore", "-B"), "program"), ((), "program")],
)
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
def test_words_that_switch_on_and_off(script: Script, value: str, names: int) -> None:
    path = script(PROGRAM)
    environment = {**os.environ, "QUERYPROF": value, "PYTHONPATH": startup()}
    subprocess.run([sys.executable, path], env=environment, check=True)
    assert len(os.listdir()) == names + 1
    assert len([*Path().glob("queryprof-program-*.qprof")]) == names
