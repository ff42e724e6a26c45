"""One window is merged like a trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from core.test_windows import ONE
from core.window_programs import run

from conftest import Run, by_operation
from queryprof.collect.reader import read_profile

pytestmark = pytest.mark.once

QUERY = """
import sqlite3
con = sqlite3.connect(":memory:")
for number in range(7): con.execute("SELECT ?", (number,)).fetchone()
"""


def test_a_window_is_merged(queryprof: Run) -> None:
    assert run(QUERY, QUERYPROF="x.qprof", QUERYPROF_WINDOW="1h").returncode == 0
    (window,) = (path.name for path in Path().glob("x.qprof.*"))
    assert queryprof("merge", "m.qprof", window).returncode == 0
    assert by_operation(read_profile("m.qprof"))[ONE] == 7
