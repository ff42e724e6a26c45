"""A program that executes itself again in the same process (os.execv) leaves two traces."""

from __future__ import annotations

from core.window_programs import run

from conftest import Run

EXECUTES_ITSELF = """
import os, sqlite3, sys
c = sqlite3.connect(":memory:")
for number in range(5): c.execute("SELECT ?", (number,)).fetchone()
if "again" not in sys.argv:
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], "again"])
"""


def test_the_trace_of_an_earlier_program_in_the_same_process_is_named(queryprof: Run) -> None:
    assert run(EXECUTES_ITSELF, QUERYPROF="x.qprof").returncode == 0
    report = queryprof("report", "x.qprof")
    assert "this recording has 1 more trace: x-" in " ".join(report.stderr.split())
