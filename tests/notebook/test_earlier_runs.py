"""Only the latest runs of cells are remembered."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.once

pytest.importorskip("IPython")

PROGRAM = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_cell("%load_ext queryprof\\nimport sqlite3\\ncon = sqlite3.connect(':memory:')")
def run(number):
    shell.run_cell(f"%%queryprof\\ncon.execute('SELECT {number}').fetchall()")
for number in range(30):
    run(number)
print("again")
run(29)
print("forgotten")
run(1)
"""


def test_the_latest_ones_are_remembered() -> None:
    environment = {**os.environ, "IPYTHONDIR": "ipython", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment
    )
    first, rest = done.stdout.split("again\n")
    again, forgotten = rest.split("forgotten\n")
    assert [text.count("Since its last run") for text in (first, again, forgotten)] == [0, 1, 0]
