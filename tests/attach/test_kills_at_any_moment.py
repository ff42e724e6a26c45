"""A recording is whole after each instruction that the program's process executes.

A process can be killed between any two of them, and a kill at random hardly ever meets the few in
which sums are changed. So a program is executed step by step (ptrace(2)), and its recording is read
whenever it has changed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from queryprof.region.pending import aggregate_rows
from queryprof.region.region import opened_region
from queryprof.region.region_files import regions_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="traced as Linux does it"),
]

PROGRAM = """
import ctypes, os, signal, sqlite3
import queryprof
queryprof.install("x.qprof")
connection = sqlite3.connect(":memory:")
cursor = connection.cursor()
for turn in range(20):
    cursor.execute("SELECT ?", (turn,)).fetchall()
if ctypes.CDLL(None).ptrace(0, 0, None, None):
    os._exit(3)
os.kill(os.getpid(), signal.SIGSTOP)
results = [connection.execute("VALUES (1), (2), (3)") for _ in range(3)]
for turn in range(6):
    cursor.execute("SELECT ?", (turn,)).fetchone()
    for result in results:
        result.fetchone()
    try:
        cursor.execute("SELECT abs()")
    except sqlite3.OperationalError:
        pass
for result in results:
    result.fetchall()
os._exit(0)
"""
SINGLE_STEP = 9


class Sums(NamedTuple):
    """All that a recording has counted."""

    calls: int
    executions: int
    in_histograms: int


def sums(path: str) -> Sums:
    with opened_region(path) as region:
        rows = aggregate_rows(region)
    # A row whose total and own time are being added up has no more own time than time.
    assert all(0 <= row.self_ns <= row.total_ns for row in rows)
    durations = [(row.count, sum(count for _, count in row.histogram)) for row in rows]
    return Sums(
        sum(calls for calls, _ in durations),
        sum(calls for calls, in_histogram in durations if in_histogram),
        sum(in_histogram for _, in_histogram in durations),
    )


def changes(child: subprocess.Popen[bytes], path: str) -> Iterator[Sums]:
    """What the recording says after each instruction that has changed it."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    with opened_region(path) as region:
        tables = [region.tables[name] for name in ("calls", "aggregates", "spreads", "octaves")]
        used = [(table.at, table.row_bytes * 32) for table in tables]
        memory = mmap.mmap(region.file, 0, prot=mmap.PROT_READ)
    seen: list[bytes] = []
    with memory:
        while True:
            now = [memory[at : at + length] for at, length in used]
            if now != seen:
                seen = now
                yield sums(path)
            assert not ptrace(SINGLE_STEP, child.pid, None, None), os.strerror(ctypes.get_errno())
            _, status = os.waitpid(child.pid, 0)
            if not os.WIFSTOPPED(status):
                child.returncode = os.waitstatus_to_exitcode(status)
                return


@pytest.mark.slow
def test_counts_are_exact_after_each_instruction(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, program]) as child:
        try:
            _, status = os.waitpid(child.pid, 0)
            if not os.WIFSTOPPED(status):
                child.returncode = os.waitstatus_to_exitcode(status)
                pytest.skip(f"ptrace is not permitted here (exit status {child.returncode})")
            (path,) = regions_of(os.path.abspath("x.qprof"))
            before, looks = sums(path), 0
            first = before
            for now in changes(child, path):
                assert now.calls - before.calls in (0, 1), (looks, before, now)
                assert now.executions == now.in_histograms, (looks, before, now)
                before, looks = now, looks + 1
        finally:
            child.kill()
    assert child.returncode == 0
    assert looks > 500
    assert before.calls - first.calls == 3 + 6 * 6 + 3
    assert before.executions - first.executions == 3 + 6 * 2
