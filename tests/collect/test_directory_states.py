"""A directory contains everything that its processes have recorded, whatever happened to them.

The tests cover each state of a process and of its forked child, with and without windows, read
twice, and without write permission.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

import queryprof.startup
from conftest import QUERYPROF, Run
from queryprof.collect import recovery
from queryprof.collect.recorded_files import RecordedFiles
from queryprof.region.region_files import checkpoint_path, readable_regions

pytestmark = pytest.mark.once

DIRECTORY = "traces"
STARTUP = next(iter(queryprof.startup.__path__))

FAMILY = """
import os, sqlite3, sys
def work(times):
    connection = sqlite3.connect(":memory:")
    for number in range(times):
        connection.execute("SELECT ?", (number,)).fetchone()
def obey():
    print(os.getpid(), flush=True)
    os.write(has_printed, b"x")
    os.read(0, 1)
work(2)
reads, writes = os.pipe()
child_prints, has_printed = os.pipe()
child = os.fork()
if not child:
    os.dup2(reads, 0)
    work(30)
    obey()
    os._exit(0)
os.read(child_prints, 1)  # both print to one pipe: one after the other
obey()
"""
EVERYTHING = 32


@contextmanager
def family(value: str, windows: bool) -> Iterator[list[int]]:
    """Start a process and its child, which have executed everything, and wait."""
    environment = {**os.environ, "QUERYPROF": value, "PYTHONPATH": STARTUP}
    if windows:
        environment["QUERYPROF_WINDOW"] = "1h"
    Path("family.py").write_text(FAMILY)
    with subprocess.Popen(
        [sys.executable, "family.py"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        pids.sort(key=lambda pid: pid != process.pid)
        try:
            yield pids
        finally:
            for pid in (pids[1], pids[0]):
                end(pid)
            process.communicate()


def end(pid: int) -> None:
    """Kill a process, and wait until it is gone or a zombie."""
    try:
        handle = os.pidfd_open(pid)
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.set_blocking(handle, True)
        select.select([handle], [], [])
        os.close(handle)
    except ProcessLookupError:
        pass


Counted = Callable[..., tuple[int, str]]


@pytest.fixture
def counted(queryprof: Run) -> Counted:
    """Return the number of executions of the statement, and the messages."""

    def nothing_can_be_written() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    def count(*given: str, limit: bool = False) -> tuple[int, str]:
        options = {"preexec_fn": nothing_can_be_written} if limit else {}
        done = queryprof("report", *given, "--format", "json", **options)
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)["views"]["statement"]
        found = sum(row["totals"]["executions"] for row in rows if row["name"] == "SELECT ?")
        return found, done.stderr

    return count


@pytest.mark.slow
@pytest.mark.parametrize("killed", [(), (1,), (0, 1)], ids=["run", "child", "both"])
@pytest.mark.parametrize("windows", [False, True], ids=["whole", "windows"])
@pytest.mark.parametrize("value", [f"{DIRECTORY}/", f"{DIRECTORY}/x.qprof"], ids=["dir", "file"])
def test_every_state(value: str, windows: bool, killed: tuple[int, ...], counted: Counted) -> None:
    os.mkdir(DIRECTORY)
    with family(value, windows) as pids:
        for one in killed:
            end(pids[one])
        for given, limit in (
            (DIRECTORY, True),
            (DIRECTORY, False),
            (f"{DIRECTORY}/*.qprof", False),
        ):
            count, message = counted(given, limit=limit)
            assert count == EVERYTHING, (given, limit, message)
            assert f"{2 - len(killed)} running" in message or len(killed) == 2
            assert f"{len(killed)} killed" in message or not killed
    for _ in range(2):
        assert counted(DIRECTORY)[0] == EVERYTHING
    assert f"{DIRECTORY}" in counted(DIRECTORY)[1]


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.repeats
def test_memory_that_is_gone_and_a_directory_that_was_moved(
    windows: bool, counted: Counted
) -> None:
    """After a restart of the machine only the copies on disk exist."""
    os.mkdir(DIRECTORY)
    with family(f"{DIRECTORY}/", windows) as pids:
        for pid in pids:
            end(pid)
    recorded = RecordedFiles()
    first = min(recorded.traces_in(DIRECTORY))
    for trace in recorded.traces_in(DIRECTORY):
        for region, pid in product(recorded.regions_of(trace), pids):
            if f"-{pid}-" in region:  # a process copies it like this, with the first one's name
                shutil.copy(region, checkpoint_path(first, pid))
                os.unlink(region)
    shutil.move(DIRECTORY, "moved")
    for _ in range(2):
        count, message = counted("moved")
        assert count == EVERYTHING
        assert "2 processes: 2 killed" in message


def test_a_command_that_runs_and_one_that_was_killed(counted: Counted) -> None:
    os.mkdir(DIRECTORY)
    Path("family.py").write_text(FAMILY)
    command = [QUERYPROF, "run", "--no-report", "-o", f"{DIRECTORY}/one.qprof", "family.py"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        assert counted(DIRECTORY)[0] == EVERYTHING
        process.kill()
        for pid in pids:
            end(pid)
        process.communicate()
    for _ in range(2):
        assert counted(DIRECTORY)[0] == EVERYTHING


def made(path: str) -> None:
    subprocess.run(
        [
            QUERYPROF,
            "run",
            "--no-report",
            "-o",
            path,
            "-c",
            "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')",
        ],
        check=True,
    )


@pytest.mark.parametrize("name", ["-journal", "-wal", "-shm"])
@pytest.mark.slow
def test_a_pipe_next_to_a_trace_is_reported(queryprof: Run, name: str) -> None:
    """No reader waits for it, and neither does a recorded program."""
    os.mkdir(DIRECTORY)
    made(f"{DIRECTORY}/x.qprof")
    os.mkfifo(f"{DIRECTORY}/x.qprof{name}")
    done = queryprof("report", DIRECTORY)
    assert done.returncode == 2
    assert f"x.qprof{name} is not a regular file" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    made(f"{DIRECTORY}/x.qprof")
    made(f"{DIRECTORY}/y.qprof")


def test_a_damaged_window_is_reported(counted: Counted) -> None:
    os.mkdir(DIRECTORY)
    made(f"{DIRECTORY}/y.qprof")
    Path(f"{DIRECTORY}/x.qprof.12-abc-1.live").write_text("garbage" * 1000)
    assert "x.qprof.12-abc-1.live" in counted(DIRECTORY)[1]


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.repeats
def test_what_is_no_trace_stays_as_it_is(queryprof: Run, ours: bool) -> None:
    """SQLite would roll back the journal, which belongs to another program."""
    os.mkdir(DIRECTORY)
    code = (
        "import sqlite3, os; c = sqlite3.connect('own.db', isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 1'); c.execute('CREATE TABLE t (a)')\n"
        "c.execute('BEGIN'); [c.execute('INSERT INTO t VALUES (?)', ('x' * 999,)) for _ in range(999)]\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    before = {name: Path(name).read_bytes() for name in ("own.db", "own.db-journal")}
    if ours:
        for name in before:
            shutil.copy(name, f"{DIRECTORY}/{name.replace('.db', '.qprof')}")
    else:
        os.symlink("../own.db", f"{DIRECTORY}/own.qprof")
    assert queryprof("report", DIRECTORY).returncode == 2
    assert {name: Path(name).read_bytes() for name in before} == before
    if ours:
        assert Path(f"{DIRECTORY}/own.qprof-journal").read_bytes() == before["own.db-journal"]


@pytest.mark.parametrize(
    ("name", "content", "stays"),
    [
        ("x.qprof.999999.new", b"my notes", True),
        ("x.qprof.999999-plan.new", b"my notes", True),
        ("x.qprof.999999-0123456789ab.new", b"my notes", True),
        ("x.qprof.999999-0123456789ab.new", b"", False),
        ("x.qprof.999999-0123456789ab.new", b"SQLite format 3\0", False),
        ("x.qprof.999999.0123456789ab.live", b"my notes of today", True),
        ("x.qprof.999999.0123456789ab.live", b"", False),
        ("x.qprof.999999.0123456789ab.live", bytes(4096), False),
        ("x.qprof.1.0123456789ab.live", bytes(4096), True),
    ],
)
@pytest.mark.repeats
def test_unfinished_files_of_killed_processes_are_removed(
    name: str, content: bytes, stays: bool, counted: Counted
) -> None:
    """They are traces, and copies of regions without a header. All other files stay."""
    os.mkdir(DIRECTORY)
    made(f"{DIRECTORY}/x.qprof")
    other = Path(f"{DIRECTORY}/{name}")
    other.write_bytes(content)
    other.chmod(0o600)  # queryprof does not read the copies that others could have made
    os.utime(other, (0, 0))
    counted(DIRECTORY)
    assert other.exists() == stays


@pytest.mark.parametrize(
    ("ending", "content"),
    [("-0123456789ab.new", b"SQLite format 3\0"), (".0123456789ab.live", b"")],
)
def test_a_file_that_is_being_written_stays(ending: str, content: bytes, counted: Counted) -> None:
    """Its process is invisible, in a container. The file is too new to be a leftover."""
    os.mkdir(DIRECTORY)
    made(f"{DIRECTORY}/x.qprof")
    other = Path(f"{DIRECTORY}/x.qprof.999999{ending}")
    other.write_bytes(content)
    soon_s = time.time() + 3600
    os.utime(other, (soon_s, soon_s))
    counted(DIRECTORY)
    assert other.exists()


@pytest.mark.parametrize(
    "name", ["x.qprof.\u00b2-abc.new", "x-\u00b2-1.qprof", "x.qprof.\u00b2.abc.live"]
)
@pytest.mark.repeats
def test_a_digit_that_is_no_number_is_no_process(name: str, queryprof: Run) -> None:
    """Superscripts are digits in Unicode, but not decimals."""
    os.mkdir(DIRECTORY)
    made(f"{DIRECTORY}/x.qprof")
    shutil.copy(f"{DIRECTORY}/x.qprof", f"{DIRECTORY}/{name}")
    assert queryprof("report", f"{DIRECTORY}/x.qprof").returncode == 0
    assert Path(f"{DIRECTORY}/{name}").exists()


def test_links_of_a_file_are_one_trace(counted: Counted) -> None:
    os.mkdir(DIRECTORY)
    made(f"{DIRECTORY}/x.qprof")
    os.link(f"{DIRECTORY}/x.qprof", f"{DIRECTORY}/y.qprof")
    os.symlink("x.qprof", f"{DIRECTORY}/z.qprof")
    assert "1 trace of 1 process: 1 ended" in counted(DIRECTORY)[1]


def test_another_process_with_the_id_of_one_that_runs(queryprof: Run, counted: Counted) -> None:
    os.mkdir(DIRECTORY)
    with family(f"{DIRECTORY}/", windows=False) as pids:
        made("x.qprof")
        with sqlite3.connect("x.qprof") as trace:
            trace.execute("UPDATE process SET pid = ?, clean_end = 0", (pids[0],))
        trace.close()
        shutil.move("x.qprof", DIRECTORY)
        assert "3 processes: 2 running, 1 killed" in counted(DIRECTORY)[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_what_root_brings_in_is_its_users(tmp_path: Path, counted: Counted) -> None:
    os.mkdir(DIRECTORY)
    with family(f"{DIRECTORY}/", windows=False) as pids:
        for region in readable_regions(pids=pids):
            os.chown(region, 65534, 65534)
        os.chown(DIRECTORY, 65534, 65534)
    counted(DIRECTORY)
    assert {one.stat().st_uid for one in Path(DIRECTORY).glob("*.qprof")} == {65534}


FORMATS: list[Callable[[str], list[str]]] = [
    lambda given: ["report", given, "--format", "markdown"],
    lambda given: ["report", given, "--show", "slowest"],
    lambda given: ["analyze", given, "--format", "sarif"],
]


@pytest.mark.parametrize("number", range(len(FORMATS)))
@pytest.mark.repeats
def test_skipped_traces_are_reported_in_each_format(queryprof: Run, number: int) -> None:
    os.mkdir(DIRECTORY)
    made(f"{DIRECTORY}/x.qprof")
    for other in range(5):
        Path(f"{DIRECTORY}/bad{other}.qprof").write_text("x")
    message = queryprof(*FORMATS[number](DIRECTORY)).stderr
    assert "bad0.qprof: not a queryprof trace" in message
    assert "; and 2 more" in message


def test_a_lock_that_another_process_holds_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    os.mkdir(DIRECTORY)
    waited = []
    monkeypatch.setattr(recovery, "sleep", waited.append)
    monkeypatch.setattr(recovery, "_slow_locks", set())
    held = os.open(DIRECTORY, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        for number in range(3):
            with recovery.directory_lock(os.path.abspath(DIRECTORY)):
                assert len(waited) == recovery.MAX_LOCK_TRIES + number
    finally:
        os.close(held)
