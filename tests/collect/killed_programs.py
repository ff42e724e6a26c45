"""Programs that end without writing their trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import by_operation
from queryprof.collect.reader import read_profile

Script = Callable[..., Path]


ASKS = """
import os, signal, sqlite3, sys, time
def work(times):
    connection = sqlite3.connect(":memory:")
    for number in range(times):
        connection.execute("SELECT ?", (number,)).fetchone()
"""


TAKES_ALL_DESCRIPTORS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True: taken.append(os.open('/dev/null', 0))
except OSError: pass
"""


DIES = "os.kill(os.getpid(), signal.SIGKILL)\n"


SELECT = ("SELECT ?", "execute")


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(text: str, name: str = "program.py") -> Path:
        path = tmp_path / name
        path.write_text(ASKS + text)
        return path

    return write


def asked(path: str = "x.qprof") -> int:
    return by_operation(read_profile(path))[SELECT]


def asked_in_all() -> int:
    return sum(asked(str(path)) for path in Path().glob("*.qprof"))


def killed(path: Path) -> None:
    """Run a program that records itself and is killed."""
    subprocess.run([sys.executable, path], check=False)


INSTALLS = "import queryprof\nqueryprof.install('x.qprof')\n"
