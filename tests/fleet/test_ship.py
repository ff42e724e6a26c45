"""`queryprof fleet ship`: each execution is in the store once, whichever process is killed, at any
time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Run

pytestmark = pytest.mark.once
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from fleet.ship_faults import DIED, executions, unfinished  # noqa: E402  needs pyarrow

from queryprof.fleet.batches import FOLDER, Batches  # noqa: E402
from queryprof.region.region import opened_region  # noqa: E402

FAULTS = str(Path(__file__).parent / "ship_faults.py")
RECORDS = """
import os, sqlite3, sys, time
import queryprof
from queryprof.core import _core

path, windows, ending = sys.argv[1], int(sys.argv[2]), sys.argv[3]
queryprof.install(path, window="1h")
now = time.time_ns()
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t (a)")
count = 1
for window in range(1, windows + 1):
    for number in range(20 * window):
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        count += 1
    is_open = connection.execute("SELECT a FROM t")
    is_open.fetchone()
    count += 1
    _core.end_window(now + window * 3600 * 10**9)
connection.execute("SELECT 1")
count += 1
print(count, flush=True)
if ending == "killed":
    sys.stdin.readline()
if ending == "leaves":
    os._exit(0)
"""


FIRST_WINDOW = 22
"""Number of executions."""


def record(path: str, windows: int, ending: str = "ends") -> int:
    """Record a program in windows, and return its number of execute calls."""
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDS, path, str(windows), ending],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    count = int(process.stdout.readline())
    if ending == "killed":
        process.kill()
    process.communicate()
    return count


def ship(queryprof: Run, *arguments: str) -> subprocess.CompletedProcess[str]:
    return queryprof("fleet", "ship", "--to", "store", "--once", *arguments)


@pytest.mark.slow
def test_windows_are_sent_once_and_deleted(queryprof: Run) -> None:
    os.mkdir("place")
    count = record("place/a.qprof", 3)
    count += record("place/b.qprof", 2, "leaves")
    count += record("place/c.qprof", 2, "killed")
    result = ship(queryprof, "place")
    assert (result.returncode, result.stdout) == (0, "")
    assert "10 windows sent to store" in result.stderr
    assert executions("store") == count
    assert os.listdir("place") == []
    assert unfinished("store") == []
    again = ship(queryprof, "place")
    assert (again.returncode, again.stderr) == (0, "")
    assert executions("store") == count


def test_one_trace_of_a_place(queryprof: Run) -> None:
    count = record("a.qprof", 1)
    record("b.qprof", 1)
    assert ship(queryprof, "a.qprof").returncode == 0
    assert executions("store") == count
    assert [name for name in os.listdir() if name.endswith(".live")]
    assert all(name.startswith("b.qprof.") for name in os.listdir() if name.endswith(".live"))


def test_a_trace_that_is_in_no_windows_stays(queryprof: Run) -> None:
    os.mkdir("place")
    program = Path("program.py")
    program.write_text("import sqlite3\nsqlite3.connect(':memory:').execute('SELECT 1')\n")
    assert queryprof("run", "-o", "place/x.qprof", "--no-report", "program.py").returncode == 0
    content = Path("place/x.qprof").read_bytes()
    assert ship(queryprof, "place").returncode == 0
    assert Path("place/x.qprof").read_bytes() == content
    assert not Path("store").exists()


@pytest.mark.slow
def test_it_dies_at_each_of_its_file_operations() -> None:
    """Nothing is sent twice or lost, and no file is left."""
    os.mkdir("place")
    count = record("place/a.qprof", 2)
    count += record("place/b.qprof", 2, "leaves")
    count += record("place/c.qprof", 1, "killed")
    subprocess.run([sys.executable, "-c", MOVE], check=True)
    result = subprocess.run(
        [sys.executable, FAULTS, "place", "store", "every", str(count)],
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = result.stdout.splitlines()
    assert int(line.removeprefix("operations ")) > 50


MOVE = """
import glob, os
from queryprof.collect.recovery import save_left_recordings
save_left_recordings("place/c.qprof")
save_left_recordings("place/b.qprof")
"""

WRITES = """
import os, sqlite3, sys, time
import queryprof
from queryprof.core import _core

queryprof.install(sys.argv[1], window="1h")
now = time.time_ns()
connection = sqlite3.connect(":memory:")
count = 0
sys.stdin.readline()
for window in range(1, 13):
    for number in range(30):
        connection.execute("SELECT ?", (number,))
        count += 1
    _core.end_window(now + window * 3600 * 10**9)
    print(count, flush=True)
    sys.stdin.readline()
os._exit(0)
"""


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_it_is_killed_while_programs_write(kills: int) -> None:
    """Two of four programs are killed. The shipper dies at random operations, often between two
    ends of their windows.
    """
    os.mkdir("place")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITES, f"place/{number}.qprof"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    chosen = random.Random(0)
    counts = [0] * 4

    def shipped(number: int) -> int:
        command = [sys.executable, FAULTS, "place", "store", str(number)]
        return subprocess.run(command, check=False, capture_output=True).returncode

    for _ in range(12):
        for writer in writers:
            if writer.poll() is None:
                assert writer.stdin
                writer.stdin.write("\n")
                writer.stdin.flush()
        for _ in range(kills):
            assert shipped(chosen.randrange(1, 60)) in (0, DIED)
        for number, writer in enumerate(writers):
            if writer.poll() is None:
                assert writer.stdout
                counts[number] = int(writer.stdout.readline())
        if counts[0] > 150:
            writers[0].kill()
            writers[0].wait()
        if counts[1] > 250:
            writers[1].send_signal(signal.SIGTERM)
            writers[1].wait()
    for writer in writers:
        writer.communicate("\n")
    assert shipped(10**9) == 0
    assert executions("store") == sum(counts)
    assert os.listdir("place") == []
    assert unfinished("store") == []


def test_a_store_that_is_away_loses_nothing(queryprof: Run) -> None:
    os.mkdir("place")
    Path("store").write_text("in the way")
    count = 0
    for number in range(2):
        count += record(f"place/{number}.qprof", 2)
        result = ship(queryprof, "place")
        assert result.returncode == 2
        assert result.stderr.count("\n") == 1
        assert "cannot be written" in result.stderr
    os.unlink("store")
    assert ship(queryprof, "place").returncode == 0
    assert executions("store") == count
    assert os.listdir("place") == []


def test_what_waits_too_long_is_lost_and_counted(queryprof: Run) -> None:
    os.mkdir("place")
    Path("store").write_text("in the way")
    record("place/a.qprof", 3)
    result = ship(queryprof, "--keep", "1KB", "place")
    assert "place: 4 windows lost: the unsent windows exceeded --keep" in result.stderr
    os.unlink("store")
    count = record("place/b.qprof", 1)
    assert ship(queryprof, "place").returncode == 0
    assert executions("store") == count
    assert os.listdir("place") == []
    assert "4 windows were lost" in queryprof("fleet", "report", "store").stderr


@pytest.mark.slow
def test_only_the_oldest_are_lost(queryprof: Run) -> None:
    os.mkdir("place")
    Path("store").write_text("in the way")
    record("place/a.qprof", 3)
    ship(queryprof, "place")
    with Batches("place").alone() as batches:
        names = batches.waiting()
        sizes = []
        for name in names:
            with batches.opened(name) as batch:
                sizes.append(batch.bytes)
    ship(queryprof, "--keep", f"{sum(sizes[1:]) / 1000}KB", "place")
    assert waiting("place") == names[1:]
    ship(queryprof, "--keep", f"{(sum(sizes[1:]) - 1) / 1000}KB", "place")
    assert waiting("place") == names[2:]


def waiting(place: str) -> list[str]:
    with Batches(place).alone() as batches:
        return batches.waiting()


def test_one_at_a_time(queryprof: Run) -> None:
    os.mkdir("place")
    with Batches("place").alone():
        result = ship(queryprof, "place")
    assert result.returncode == 2
    assert (
        result.stderr
        == "queryprof: place: another `queryprof fleet ship` already sends these recordings\n"
    )
    assert not Path("place", FOLDER).exists()


def test_a_damaged_part_is_set_aside(queryprof: Run) -> None:
    os.mkdir("place")
    count = record("place/a.qprof", 2) + record("place/b.qprof", 2)
    (path,) = Path("place").glob("a.*-1.live")
    with opened_region(str(path)) as region:
        at, length = region.tables["calls"].at, region.tables["calls"].row_bytes
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * length)
    result = ship(queryprof, "place")
    assert result.returncode == 1
    # Which value is found first, and how, depends on the rate of this machine's clock.
    assert f"skipped, and kept as place/{path.name}.damaged: " in result.stderr
    assert "damaged: " in result.stderr.partition(".damaged: ")[2]
    assert executions("store") == count - FIRST_WINDOW
    assert os.listdir("place") == [f"{path.name}.damaged"]
    assert ship(queryprof, "place").stderr == ""


def test_files_in_another_shape_are_reported_and_stay(queryprof: Run) -> None:
    os.mkdir("place")
    count = record("place/b.qprof", 1)
    Path("place/a.qprof.1-abc-1.live").write_bytes(b"nothing")
    result = ship(queryprof, "place")
    assert result.returncode == 1
    assert "skipped: " in result.stderr
    assert executions("store") == count
    assert os.listdir("place") == ["a.qprof.1-abc-1.live"]


def test_a_copy_that_is_not_complete_yet_is_skipped(queryprof: Run) -> None:
    """A process writes the header of its copy last. Its figures are in memory."""
    os.mkdir("place")
    count = record("place/b.qprof", 1)
    copy = Path("place/a.qprof.1.0123456789ab.live")
    copy.write_bytes(bytes(1000))
    copy.chmod(0o600)
    result = ship(queryprof, "place")
    assert (result.returncode, "skipped" in result.stderr) == (0, False)
    assert executions("store") == count
    copy.write_bytes(b"x" * 1000)
    result = ship(queryprof, "place")
    assert result.returncode == 1
    assert f"skipped: {copy.absolute()}: not a queryprof recording" in result.stderr


def test_names_are_hashes(queryprof: Run) -> None:
    os.mkdir("place")
    record("place/a.qprof", 1)
    assert ship(queryprof, "--anonymize", "place").returncode == 0
    found = json.loads(queryprof("fleet", "report", "store", "--format", "json").stdout)
    assert found
    assert all(len(one["statement"]) == 16 and " " not in one["statement"] for one in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--once", "nothere"], "nothere: not a directory, nor the path of a trace (*.qprof)"),
        (["--once", "nothere/x.qprof"], "nothere/x.qprof: no such directory"),
        ([], "needs a PLACE, or -- COMMAND"),
        (["--once", "--", "true"], "at most one PLACE, and not --once"),
        (["--"], "at most one PLACE"),
        (["--every", "5", "."], "'5' is not a duration: 500ms, 60s, 5m, 90d"),
        (["--keep", "-1GB", "."], "is not a size: 500MB, 1GB"),
        (["--otlp", "env", "--anonymize", "."], "--anonymize cannot be combined with"),
    ],
)
def test_wrong_arguments(queryprof: Run, arguments: list[str], message: str) -> None:
    result = queryprof("fleet", "ship", "--to", "store", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host/x", "not the URL of a store"),
        ("s3://key:secret@bucket/x", "a URL must not contain keys"),
        ("s3://bucket/x?access_key=k&secret_key=s", "a URL must not contain keys"),
    ],
)
def test_wrong_stores(queryprof: Run, url: str, message: str) -> None:
    result = queryprof("fleet", "ship", "--to", url, "--once", ".")
    assert result.returncode == 2
    assert message in result.stderr
    assert "secret@" not in result.stderr


def test_a_command_is_sent_with_its_status(queryprof: Run) -> None:
    code = "import sqlite3, sys; sqlite3.connect(':memory:').execute('SELECT 1'); sys.exit(3)"
    result = queryprof("fleet", "ship", "--to", "store", "--", sys.executable, "-c", code)
    assert result.returncode == 3
    assert executions("store") == 1
    assert "1 window sent to store" in result.stderr


@pytest.mark.slow
def test_a_command_whose_store_is_away(queryprof: Run) -> None:
    Path("store").write_text("in the way")
    code = "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')"
    result = queryprof("fleet", "ship", "--to", "store", "place", "--", sys.executable, "-c", code)
    assert result.returncode == 0
    assert "`queryprof fleet ship --once --to store " in result.stderr
    os.unlink("store")
    assert ship(queryprof, "place").returncode == 0
    assert executions("store") == 1


def test_a_command_ends_by_its_signal(queryprof: Run) -> None:
    code = (
        "import os, signal, sqlite3; sqlite3.connect(':memory:').execute('SELECT 1');"
        " os.kill(os.getppid(), signal.SIGTERM); signal.pause()"
    )
    command = ["fleet", "ship", "--to", "store", "--", sys.executable, "-c", code]
    assert queryprof(*command).returncode == -signal.SIGTERM
    assert executions("store") == 1
