"""Programs that are started without standard streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once

PROGRAM = """
import os, sqlite3, sys
import queryprof
if sys.argv[1:]:
    queryprof.install(sys.argv[1])
connection = sqlite3.connect(":memory:")
for _ in range(50):
    connection.execute("SELECT 1").fetchall()
found = []
for number in range(3):
    try:
        os.write(number, b"the program's own output" * 1000)
    except OSError as error:
        found.append(error.errno)
with open("found", "w") as file:
    file.write(repr(found))
"""


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.repeats
def test_it_is_recorded_and_its_writes_fail_as_without(closed: tuple[int, ...]) -> None:
    """No file of the recording stays open under the number of a closed stream."""

    def close() -> None:
        for number in closed:
            os.close(number)

    found = []
    for arguments in ([], ["x.qprof"]):
        subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=close,
            check=True,
        )
        found.append(Path("found").read_text())
    assert found[0] == found[1]
    counts = [a.count for a in read_profile("x.qprof").aggregates if a.operation == "execute"]
    assert sum(counts) == 50
