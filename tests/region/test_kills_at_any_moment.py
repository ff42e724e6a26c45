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
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from queryprof.collect.recordings import recordings_at
from queryprof.core import _core
from queryprof.region.pending import aggregate_rows
from queryprof.region.region import opened_region
from queryprof.region.region_files import regions_of_trace

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
BORDER = """
import ctypes, os, signal, sqlite3, time
import queryprof
from queryprof.core import _core
queryprof.install("x.qprof", window="1h")
now, hour = time.time_ns(), 3600 * 10**9
connection = sqlite3.connect(":memory:")
cursor = connection.cursor()
for turn in range(5):
    cursor.execute("SELECT ?", (turn,)).fetchall()
results = [connection.execute("VALUES (1), (2), (3)") for _ in range(2)]
for result in results:
    result.fetchone()
_core.flush()
_core.end_window(now + hour)
if ctypes.CDLL(None).ptrace(0, 0, None, None):
    os._exit(3)
os.kill(os.getpid(), signal.SIGSTOP)
_core.end_window(now + 2 * hour)
for result in results:
    result.fetchall()
cursor.execute("SELECT ?", (6,)).fetchone()
_core.flush()
os._exit(0)
"""
"""Cursors stay open across two window ends. The test single-steps through the second."""

SINGLE_STEP = 9
SERVING = {
    number
    for number, name in enumerate(_core.operation_names())
    if name.startswith("fetch") or name == "next"
}
"""The operations that begin no execution."""


HEADER_BYTES = 512
"""The least size of the region's header."""


class Sums(NamedTuple):
    """Everything that a recording has counted."""

    calls: int
    executions: int
    in_histograms: int


def sums() -> Sums:
    """Return the sums of the parts and the region, as a reader sees them."""
    with ExitStack() as files:
        (recording,) = recordings_at(os.path.abspath("x.qprof"), files)
        rows = [row for region in recording.regions() for row in aggregate_rows(region)]
    # A row whose total and own time are being added up has no more own time than total time.
    assert all(0 <= row.self_ns <= row.total_ns for row in rows)
    return Sums(
        sum(row.count for row in rows),
        sum(row.count for row in rows if row.key[-1] not in SERVING),
        sum(count for row in rows for _, count in row.histogram),
    )


def changes(child: subprocess.Popen[bytes], path: str) -> Iterator[Sums]:
    """Yield the recording's sums after each instruction that changed it."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    with opened_region(path) as region:
        tables = [region.tables[name] for name in ("calls", "aggregates", "spreads", "octaves")]
        used = [(table.at, table.row_bytes * 32) for table in tables] + [(0, HEADER_BYTES)]
        memory = mmap.mmap(region.file, 0, prot=mmap.PROT_READ)
    seen: tuple[list[bytes], list[str]] = ([], [])
    with memory:
        while True:
            now = ([memory[at : at + length] for at, length in used], os.listdir())
            if now != seen:
                seen = now
                yield sums()
            assert not ptrace(SINGLE_STEP, child.pid, None, None), os.strerror(ctypes.get_errno())
            _, status = os.waitpid(child.pid, 0)
            if not os.WIFSTOPPED(status):
                child.returncode = os.waitstatus_to_exitcode(status)
                return


@contextmanager
def stopped(tmp_path: Path, text: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Start a program that has stopped itself. Return it and the path of its region."""
    program = tmp_path / "program.py"
    program.write_text(text)
    with subprocess.Popen([sys.executable, program]) as child:
        try:
            _, status = os.waitpid(child.pid, 0)
            if not os.WIFSTOPPED(status):
                child.returncode = os.waitstatus_to_exitcode(status)
                pytest.skip(f"ptrace is not permitted here (exit status {child.returncode})")
            (path,) = regions_of_trace(os.path.abspath("x.qprof"))
            yield child, path
        finally:
            child.kill()
    assert child.returncode == 0


@pytest.mark.slow
def test_counts_are_exact_after_each_instruction(tmp_path: Path) -> None:
    with stopped(tmp_path, PROGRAM) as (child, path):
        before, looks = sums(), 0
        first = before
        for now in changes(child, path):
            assert now.calls - before.calls in (0, 1), (looks, before, now)
            assert now.executions == now.in_histograms, (looks, before, now)
            before, looks = now, looks + 1
    assert looks > 500
    assert before.calls - first.calls == 3 + 6 * 6 + 3
    assert before.executions - first.executions == 3 + 6 * 2


@pytest.mark.slow
def test_a_border_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """This is the end of a window, and the calls after it."""
    with stopped(tmp_path, BORDER) as (child, path):
        before, looks = sums(), 0
        first = before
        assert first == Sums(1 + 2 * 5 + 2 * 2, 1 + 5 + 2, 1 + 5 + 2)
        for now in changes(child, path):
            assert now.calls - before.calls in (0, 1), (looks, before, now)
            assert now.executions == now.in_histograms, (looks, before, now)
            before, looks = now, looks + 1
    assert looks > 500
    assert len(list(tmp_path.glob("x.qprof.*-*.live"))) >= 2
    assert before.calls - first.calls == 2 + 2
    assert before.executions - first.executions == 1
