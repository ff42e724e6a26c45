"""Whatever an untrusted store or recording contains, the files next to it are read completely, no
command prints a traceback or hangs, and only the named files are written or deleted.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from fleet.fleets import Work, add_host
from strangers.region_mutations import copy_region

from queryprof.region.region_files import SHARED_MEMORY, resolve_directory

pytestmark = pytest.mark.once
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

CASES = max(3, int(os.environ.get("QUERYPROF_EXAMPLES", "60")) // 4)
FIRST = int(os.environ.get("QUERYPROF_FIRST", "0"))
SEED = os.environ.get("QUERYPROF_SEED", "1")
KINDS = os.environ.get("QUERYPROF_KINDS", "").split()
EACH = 500
"""The number of cases per process."""

RECORDS = """
import os, sqlite3, sys, time
from queryprof.region import region_files
region_files.SHARED_MEMORY = sys.argv[2]
import queryprof
from queryprof.core import _core

path, shared, window, *counts = sys.argv[1:]
queryprof.install(path, window=window if window[:1].isdigit() else None)
now = time.time_ns()
connection = sqlite3.connect(":memory:")
word = "good" if "bad" not in path else "bad"
for number, count in enumerate(map(int, counts), 1):
    with queryprof.span("GET /"):
        for value in range(count):
            connection.execute(f"SELECT ? AS {word}", (value,)).fetchall()
    if number < len(counts):
        _core.end_window(now + number * 3600 * 10**9)
if window == "trace":
    queryprof.uninstall()
os.kill(os.getpid(), 9)
"""


def record(case: Path, name: str, window: str, *counts: int) -> Path | None:
    """Record a program that is killed. Return the path of its region, if it leaves one."""
    script = case / ("bad.py" if "bad" in name else "good.py")
    script.write_text(RECORDS)
    # The region must be on the shared-memory file system.
    shared = Path(tempfile.mkdtemp(prefix="strangers-", dir=SHARED_MEMORY))
    command = [sys.executable, script, case / "place" / f"{name}.qprof", shared, window]
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("QUERYPROF")
    }
    done = subprocess.run(
        [*map(str, [*command, *counts])], env=environment, capture_output=True, check=False
    )
    assert done.returncode == -9, done.stderr
    script.unlink()
    left = None
    for path in shared.iterdir():
        left = case / "shm" / path.name
        copy_region(path, left)
    shutil.rmtree(shared)
    return left


def set_aside(region: Path | None, kind: str, token: str = "abcdef") -> None:
    """Rename a region after its purpose."""
    assert region
    name = f"{region.name.rpartition('-')[0]}-{token}"
    region.rename(region.with_name(f"bad {kind} {name}" if kind else name))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a directory with recordings and a store, of good processes and of a changed one.

    Recordings contain their original path, so each case is at this path.
    """
    root = Path(resolve_directory(str(tmp_path_factory.mktemp("stores"))))
    case, victim = root / "case", root / "victim"
    for name in ("place", "shm", "store"):
        (case / name).mkdir(parents=True)
    victim.mkdir()
    (victim / "kept.txt").write_text("kept")
    with closing(sqlite3.connect(victim / "kept.db")) as db:
        db.execute("CREATE TABLE t (a)")
    record(case, "good", "1h", 10, 20, 30, 5)
    record(case, "plain", "", 7)
    set_aside(record(case, "running", "1h", 9), "", "running")
    set_aside(record(case, "bad", "1h", 4, 3), "left")
    set_aside(record(case, "bad_plain", "", 7), "plain")
    set_aside(record(case, "bad_running", "1h", 9), "running", "running")
    folder = case / "store" / "trace" / "service=shop" / "date=2026-11-01"
    folder.mkdir(parents=True)
    for name in ("good", "bad"):
        record(case, f"whole_{name}", "trace", 7)
        shutil.move(case / "place" / f"whole_{name}.qprof", folder / f"0000-{name}-1.qprof")
        slow = Work(1000, 10**7, span="GET /")
        for version in ("1", "2"):
            work = {f"SELECT {name} FROM t WHERE a = ?": Work(100, 10**6), "SELECT slow": slow}
            for host in ("h1", "h2") if name == "good" else ("bad",) * (version == "2"):
                add_host(case / "store", host, work, version, spans={"GET /": 30})
    case.rename(root / "recorded")
    return root


def wrong_in(program: str, root: Path, *kinds: str) -> list[str]:
    """Run the cases of a program. Return a line for each wrong case."""
    here, temporary = Path(__file__).parent, root / "temporary"
    temporary.mkdir(exist_ok=True)
    path = os.pathsep.join([str(here.parent), *os.environ.get("PYTHONPATH", "").split()])
    environment = {"TMPDIR": str(temporary), "COLUMNS": "80", "PYTHONPATH": path}
    wrong = []
    for first in range(FIRST, FIRST + CASES, EACH):
        last = min(first + EACH, FIRST + CASES)
        done = subprocess.run(
            [sys.executable, here / program, root, str(first), str(last), SEED, *kinds],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        *lines, counts = done.stdout.splitlines() or [""]
        print(counts)
        wrong += lines
        ended = [*wrong[-20:], done.stdout[-1500:], done.stderr[-1500:]]
        assert done.returncode == 0, "\n\n".join(ended)
    return wrong


@pytest.mark.slow
def test_what_lies_beside_a_changed_file_is_complete(root: Path) -> None:
    """The changed files are stores, parts, copies of regions, and regions of running or killed
    processes.
    """
    wrong = wrong_in("beside.py", root, *KINDS)
    assert not wrong, "\n\n".join(wrong[:20]) + f"\n{len(wrong)} in all"


def test_prometheus_goes_on_counting_beside_changed_regions(root: Path) -> None:
    """They are changed before its first look at them, or after."""
    pytest.importorskip("prometheus_client")
    wrong = wrong_in("scraped.py", root)
    assert not wrong, "\n\n".join(wrong[:20]) + f"\n{len(wrong)} in all"
