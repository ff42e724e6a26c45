"""The program's settings and its work at exit do not stop the end of its recording."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import QUERYPROF
from queryprof.collect.reader import read_profile

BEGIN = """
import gc, sqlite3, sys, traceback
import queryprof
queryprof.install("t.qprof")
sqlite3.connect(":memory:").execute("SELECT 1").fetchall()
"""

COLLECTIONS = """
seen = []
def look(phase, _):
    seen.append("_keep" in [frame.f_code.co_name for frame, _ in traceback.walk_stack(sys._getframe())])
gc.callbacks.append(look)
gc.set_threshold(1)
queryprof.uninstall()
[[] for _ in range(1000)]
assert seen and not any(seen), seen
assert gc.isenabled() and gc.get_threshold()[0] == 1
"""

NO_LIMIT = """
sys.setrecursionlimit(2**31 - 1)
queryprof.uninstall()
assert sys.getrecursionlimit() == 2**31 - 1
"""

NO_COLLECTIONS = """
gc.disable()
queryprof.uninstall()
assert not gc.isenabled()
"""

DEEP = """
from queryprof.core.undisturbed import undisturbed
def deep(number):
    return number and deep(number - 1)
sys.setrecursionlimit(60)
with undisturbed():
    deep(900)
queryprof.uninstall()
assert sys.getrecursionlimit() == 60
"""

FEW_CALLS = """
sys.setrecursionlimit(60)
queryprof.uninstall()
assert sys.getrecursionlimit() == 60
"""


@pytest.mark.once
@pytest.mark.parametrize(
    "end",
    [COLLECTIONS, NO_COLLECTIONS, FEW_CALLS, DEEP, NO_LIMIT],
    ids=["gc", "no gc", "60", "deep", "no limit"],
)
@pytest.mark.repeats
def test_the_trace_is_written(tmp_path: Path, end: str) -> None:
    """No garbage is collected meanwhile: a daemon thread may make more and more connections."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + end],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sum(one.count for one in read_profile(str(tmp_path / "t.qprof")).aggregates) == 3


def limited(name: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(name, (most, most))


@pytest.mark.parametrize(
    ("name", "most", "reason"),
    [
        (resource.RLIMIT_FSIZE, 0, "File too large"),
        (resource.RLIMIT_NOFILE, 5, "Too many open files"),
    ],
)
@pytest.mark.repeats
def test_what_cannot_begin_is_one_line_and_leaves_nothing(
    tmp_path: Path, name: int, most: int, reason: str
) -> None:
    done = subprocess.run(
        [QUERYPROF, "run", "-o", "x.qprof", "-c", "pass"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=limited(name, most),
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("queryprof: ")
    assert done.stderr.endswith(f"{reason}\n")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
