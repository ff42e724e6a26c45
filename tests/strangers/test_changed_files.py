"""Whatever an untrusted file contains, a command writes only where it was told to, prints no
traceback, and ends.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from strangers import mutations

from conftest import QUERYPROF
from queryprof.analysis.views import DIMENSIONS
from queryprof.cli.report import VIEWS
from queryprof.region.region_files import regions_of_trace

pytestmark = pytest.mark.once

CHANGES = int(os.environ.get("QUERYPROF_EXAMPLES", "60")) // 4
SEED = int(os.environ.get("QUERYPROF_SEED", "1"))
COMMANDS_OF_ONE = 2
AT_ONCE = 2

PROGRAM = """
import sqlite3, sys
db = sqlite3.connect("t.db")
for i in range(20):
    with db:
        db.execute("INSERT INTO t VALUES (?, ?)", (i, "x" * 100))
    db.execute("SELECT b FROM t WHERE a = ?", (i,)).fetchall()
    db.execute("SELECT count(*) FROM t WHERE b LIKE ?", ("%y%",)).fetchall()
"""
KILLED = "import os, queryprof\nqueryprof.install('k.qprof')\n{0}\nos.kill(os.getpid(), 9)\n"
TESTS = """
import sqlite3
def test_one():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (a)")
    for i in range(3): db.execute("SELECT a FROM t WHERE a = ?", (i,)).fetchall()
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with everything that strangers may send: x.qprof, its workload, t.db, b.json,
    region.
    """
    place = tmp_path_factory.mktemp("strangers") / "base"
    place.mkdir()
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("QUERYPROF")
    }
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "QUERYPROF_ROOTS": str(place)}

    def run(*command: object, status: int = 0) -> None:
        done = subprocess.run(
            [*map(str, command)], cwd=place, env=environment, capture_output=True, check=False
        )
        assert done.returncode == status, done.stderr

    with closing(sqlite3.connect(place / "t.db")) as db:
        db.execute("CREATE TABLE t (a, b)")
        db.executemany("INSERT INTO t VALUES (?, ?)", ((i, "y" * 20) for i in range(2000)))
        db.commit()
    (place / "program.py").write_text(PROGRAM)
    (place / "killed.py").write_text(KILLED.format(PROGRAM))
    (place / "test_one.py").write_text(TESTS)
    run(
        QUERYPROF,
        "run",
        "--parameters",
        "--record-workload",
        "--no-report",
        "-o",
        "x.qprof",
        "program.py",
    )
    run(sys.executable, "killed.py", status=-signal.SIGKILL)
    (found,) = regions_of_trace(str(place / "k.qprof"))
    shutil.move(found, place / "region")
    run(
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "queryprof.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--queryprof-save",
        "-o",
        "queryprof_baseline=b.json",
        "test_one.py",
    )
    victim = place.parent / "victim"
    victim.mkdir()
    (victim / "kept.txt").write_text("kept")
    with closing(sqlite3.connect(victim / "kept.db")) as db:
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (1)")
        db.commit()
    return place


def commands(draw: random.Random, kind: str) -> list[list[str]]:
    """Return the commands on the changed file."""
    if kind == "workload":
        replays = [["lab", "replay", "x.qprof", "--db", "t.db", "--rounds", "1"]]
        tune = [
            "lab",
            "workers",
            "x.qprof",
            "--db",
            "t.db",
            "--most",
            "1",
        ]
        return [*replays, *([tune] if draw.random() < 0.1 else [])]
    if kind == "region":
        return draw.sample(
            [
                ["report", "k.qprof"],
                ["top", "--once", "--every", "50ms"],
                ["analyze", "k.qprof"],
                ["merge", "out/m.qprof", "k.qprof"],
                ["html", "-o", "out/k.html", "k.qprof"],
            ],
            2,
        )
    report = ["report", "x.qprof", "--top", draw.choice(["1", "1000"])]
    by = [*report, "--by", draw.choice(list(DIMENSIONS))]
    form = [*report, "--format", draw.choice(["json", "markdown"])]
    other = [*report, "--show", draw.choice(list(VIEWS))]
    viewer = draw.choice(["pstats", "speedscope"])
    export = ["export", "-o", f"out/{viewer}", "--format", viewer, "x.qprof"]
    compare = [
        "compare",
        *draw.choice([["x.qprof", "../base/x.qprof"], ["../base/x.qprof", "x.qprof"]]),
        "--format",
        draw.choice(["table", "json", "markdown", "junit", "github"]),
    ]
    analyze = ["analyze", "x.qprof", "--format", draw.choice(["table", "json", "sarif"])]
    html = [
        "html",
        "-o",
        "out/x.html",
        "x.qprof",
        *draw.choice([[], ["--against", "../base/x.qprof"]]),
    ]
    chosen = draw.sample(
        [
            by,
            form,
            other,
            export,
            compare,
            analyze,
            html,
            ["merge", "out/m.qprof", "x.qprof", "../base/x.qprof"],
            ["top", "x.qprof", "--once", "--every", "50ms"],
            ["snakeviz", "x.qprof", "--", "--version"],
        ],
        COMMANDS_OF_ONE,
    )
    if draw.random() < 0.1:
        chosen.append(["analyze", "x.qprof", "--db", "t.db", "--prove", "--budget", "2s"])
    return chosen


def changed(base: Path, number: int) -> tuple[Path, str, str, list[list[str]]]:
    """Return a directory with one changed file, a description of the change, and the commands for
    it.
    """
    draw = random.Random(f"{SEED} {number}")
    kind = [
        "trace",
        "trace",
        "trace",
        "workload",
        "region",
        "trace",
        "workload",
        "trace",
        "region",
        "trace",
    ][number % 10]
    place = base.parent / f"case-{number}"
    shutil.copytree(
        base, place, ignore=shutil.ignore_patterns("__pycache__", "region", "*.py", "b.json")
    )
    (place / "out").mkdir()
    if kind == "trace":
        how = mutations.trace(draw, place / "x.qprof")
    elif kind == "workload":
        (path,) = place.glob("x.qprof-workload-*")
        how = mutations.workload(draw, path)
    else:
        path = place / "k.qprof.4194303.abc.live"
        shutil.copy(base / "region", path)
        path.chmod(0o600)
        how = mutations.region(draw, path)
    return place, kind, how, commands(draw, kind)


def judged(base: Path, numbers: list[int]) -> list[str]:
    """Return the errors of the commands on some changes."""
    cases = [changed(base, number) for number in numbers]
    plan = [(str(place), command) for place, _, _, chosen in cases for command in chosen]
    of = {str(place): f"{kind}: {how}" for place, kind, how, _ in cases}
    temporary = base.parent / f"temporary-{numbers[0]}"
    temporary.mkdir()
    (temporary.parent / f"plan-{numbers[0]}").write_text(json.dumps(plan))
    done = subprocess.run(
        [
            sys.executable,
            Path(__file__).with_name("commands.py"),
            temporary.parent / f"plan-{numbers[0]}",
        ],
        env={**os.environ, "TMPDIR": str(temporary), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    found, last = [], ""
    for line in done.stdout.splitlines():
        result: dict[str, Any] = json.loads(line)
        if "of" in result:
            last = f"{of[result['of'][0]]} | {' '.join(result['of'][1])} ({result['of'][0]})"
            continue
        if "journal of None" in last:  # SQLite rolls it back
            result["changed"] = [
                path for path in result["changed"] if not path.startswith("x.qprof")
            ]
        wrong = {
            "status": result["status"] not in (0, 1, 2),
            "lines": result["status"] == 2 and "Traceback" in result["message"],
            "written": result["written"],
            "changed": result["changed"],
            "left": result["left"],
        }
        if any(wrong.values()):
            found.append(f"{last}: {[name for name, is_so in wrong.items() if is_so]} {result}")
        last = ""
    if done.returncode or last:
        found.append(f"{last}: ended with {done.returncode}: {done.stderr[-1500:]}")
    if not found:
        for place, *_ in cases:
            shutil.rmtree(place, ignore_errors=True)
    return found


@pytest.mark.slow
def test_changed_files(base: Path) -> None:
    """Traces, workloads and regions are tested with every command that reads them."""
    each = min(20, -(-CHANGES // AT_ONCE))
    chunks = [list(range(first, min(first + each, CHANGES))) for first in range(0, CHANGES, each)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = [
            one for wrong in pool.map(lambda chunk: judged(base, chunk), chunks) for one in wrong
        ]
    assert not found, "\n\n".join(found[:20]) + f"\n{len(found)} in all"


def test_changed_baselines(base: Path, tmp_path: Path) -> None:
    """The status is pytest's own: 0 passed, 1 failed, 2 to 4 with a message. One process reads many
    of them.
    """
    runner = tmp_path / "run.py"
    runner.write_text(
        textwrap.dedent("""
        import pytest, sys
        for path in sys.argv[1:]:
            status = pytest.main(["-q", "-p", "queryprof.pytest_plugin", "-p", "no:cacheprovider",
                                  "--queryprof-check", "-o", f"queryprof_baseline={path}", "test_one.py"])
            print("STATUS", int(status), path, flush=True)
        """)
    )
    paths = []
    for number in range(max(4, CHANGES // 10)):
        path = tmp_path / f"b{number}.json"
        shutil.copy(base / "b.json", path)
        mutations.baseline(random.Random(f"{SEED} {number}"), path)
        paths.append(path)
    done = subprocess.run(
        [sys.executable, runner, *paths],
        cwd=base,
        capture_output=True,
        text=True,
        timeout=60 + len(paths),
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
    )
    statuses = [line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("STATUS")]
    assert [path for _, path in statuses] == [str(path) for path in paths], done.stderr[-3000:]
    assert {status for status, _ in statuses} <= {"0", "1", "2", "4"}, done.stdout[-3000:]
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
