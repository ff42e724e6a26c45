"""The processes that execute untrusted SQL: isolated, limited, and gone with their command."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from conftest import QUERYPROF, Run
from queryprof.planner.judging import BEFORE, Judge, OutOfTime

pytestmark = pytest.mark.once

PROGRAM = """
    import sqlite3
    db = sqlite3.connect("t.db")
    for i in range(200):
        db.execute("INSERT INTO t VALUES (?, ?)", (i, "x" * 100))
        db.execute("SELECT b FROM t WHERE a = ?", (i,)).fetchall()
    db.commit()
"""

ONE_STEP = "SELECT hex(zeroblob(60000000)) LIKE '%' || hex(zeroblob(12000)) || '1'"
"""A function call that takes an hour in a single step of SQLite."""


@pytest.fixture
def recorded(queryprof: Run, script: Callable[[str], Path], tmp_path: Path) -> Path:
    """A directory with t.db, x.qprof and its workload."""
    with closing(sqlite3.connect("t.db")) as db:
        db.execute("CREATE TABLE t (a, b)")
        db.executemany("INSERT INTO t VALUES (?, ?)", ((i, "y" * 100) for i in range(20_000)))
        db.commit()
    done = queryprof(
        "run",
        "--record-workload",
        "--parameters",
        "--no-report",
        "-o",
        "x.qprof",
        script(textwrap.dedent(PROGRAM)),
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


def of_folder(place: Path) -> list[str]:
    """Return the command lines of processes that have a folder in their environment or
    arguments.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(place) and process.status() != "zombie":
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def wait_for(is_so: Callable[[], object], left: Callable[[], object] = lambda: "") -> None:
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    pytest.fail(f"it has not come: {left()}")


@pytest.mark.parametrize("command", [["analyze"], ["lab", "replay"]])
@pytest.mark.slow
def test_a_killed_command_leaves_no_process_and_no_copy(recorded: Path, command: list[str]) -> None:
    """The command is killed at several moments: when there is a folder, a copy, or a replaying
    process.
    """
    options = ["--prove"] if command == ["analyze"] else ["--rounds", "50"]
    for moment in range(4):
        place = recorded / f"temporary-{moment}"
        place.mkdir()
        process = subprocess.Popen(
            [QUERYPROF, *command, "x.qprof", "--db", "t.db", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(place)},
        )
        wait_for(
            [
                lambda place=place: list(place.iterdir()),
                lambda place=place: list(place.glob("*/*")) or len(of_folder(place)) > 2,
                lambda place=place: len(of_folder(place)) > 2,
                lambda place=place: len(of_folder(place)) > 2 and list(place.iterdir()),
            ][moment]
        )
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(
            lambda place=place: not of_folder(place) and not list(place.iterdir()),
            lambda place=place: (of_folder(place), list(place.rglob("*"))),
        )


@pytest.mark.slow
def test_a_step_without_end_is_ended_with_its_process(recorded: Path) -> None:
    """SQLite does not check the time within a step. The copy is created again for the remaining
    time.
    """
    database = (recorded / "t.db").as_uri()
    with Judge() as judge:
        judge.copy_database(f"{database}?mode=ro", BEFORE)
        judge.set_deadline(1)
        with pytest.raises(OutOfTime):
            judge.rows(BEFORE, ONE_STEP)
        with pytest.raises(OutOfTime):
            judge.rows(BEFORE, "SELECT 1")
        judge.set_deadline(60)
        assert judge.rows(BEFORE, "SELECT count(*) FROM t") == [(20_200,)]


@pytest.mark.slow
def test_a_budget_ends_such_a_step(queryprof: Run, recorded: Path) -> None:
    with closing(sqlite3.connect(recorded / "x.qprof")) as trace:
        trace.execute(
            "UPDATE exemplar SET sql = ?, parameters = '' WHERE sql LIKE 'SELECT%'",
            (f"SELECT b FROM t WHERE a = 1 AND ({ONE_STEP})",),
        )
        trace.commit()
    done = queryprof("analyze", "x.qprof", "--db", "t.db", "--prove", "--budget", "2s", timeout=60)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_module_of_the_current_directory_is_not_imported(queryprof: Run, recorded: Path) -> None:
    """The same holds for modules of PYTHONPATH: the current directory may contain a stranger's
    files.
    """
    with closing(sqlite3.connect(recorded / "before.db")) as db:
        db.execute("CREATE TABLE t (a, b)")
    stranger = recorded / "stranger"
    stranger.mkdir()
    for name in (
        "hashlib",
        "json",
        "queryprof",
        "statistics",
        "queue",
        "apsw",
        "sqlite3",
        "tempfile",
    ):
        (stranger / f"{name}.py").write_text("open('../RAN', 'w')\nraise SystemExit(7)\n")
    for command in (
        ["lab", "replay", "../x.qprof", "--db", "../before.db", "--rounds", 1],
        [
            "lab",
            "workers",
            "../x.qprof",
            "--db",
            "../before.db",
            "--most",
            1,
        ],
        ["analyze", "../x.qprof", "--db", "../t.db", "--prove", "--budget", "5s"],
    ):
        done = queryprof(*command, cwd=stranger)
        assert done.returncode == 0, done.stderr
        assert not (recorded / "RAN").exists()


LIMITED = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from queryprof.confined.process import confine_process, limit_file_size, limit_cpu_time
confine_process()
limit_file_size(1000)
limit_cpu_time(30)
soft = lambda name: resource.getrlimit(name)[0]
assert soft(resource.RLIMIT_CORE) == 0
assert soft(resource.RLIMIT_FSIZE) == 1000
assert 0 < soft(resource.RLIMIT_CPU) < 60
assert 2**30 < soft(resource.RLIMIT_AS) < 2**50
print("confined", flush=True)
try:
    bytearray(soft(resource.RLIMIT_AS) * 2)
except MemoryError:
    print("bounded", flush=True)
while True:
    pass
"""


def test_limits_and_the_end_with_the_parent() -> None:
    """It ends when its standard input is closed, whatever it is doing."""
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", LIMITED, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdin
    assert process.stdout.readline() == b"confined\n"
    assert process.stdout.readline() == b"bounded\n"
    process.stdin.close()
    assert process.wait(60) == -signal.SIGKILL
    process.stdout.close()


def test_a_script_is_played_statement_by_statement() -> None:
    from queryprof.replay.player import split_script

    trigger = "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT ';'; DELETE FROM t; END;"
    found = split_script(f"SELECT 1;-- a;b\nSELECT ';' /* ; */; {trigger} SELECT 2")
    assert [one.strip() for one in found] == [
        "SELECT 1;",
        "-- a;b\nSELECT ';' /* ; */;",
        trigger,
        "SELECT 2",
    ]
