"""A process's recording outlives it, however it ends, and can be read while it runs."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import Run, by_operation
from queryprof.collect.reader import read_profile
from queryprof.model import Profile
from queryprof.region.region_files import SHARED_MEMORY, checkpoints_of_trace, regions_of_trace

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
]

Script = Callable[..., Path]

LOGGING = """
import os, sqlite3, sys
import queryprof
queryprof.install("x.qprof")
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
cursor = sqlite3.connect(":memory:").cursor()
texts = [f"SELECT {number} AS n{number}, ?" for number in range(500)]
print("begins", flush=True)
for turn in range(10**9):
    cursor.execute(texts[turn // 7 % 500], (turn,))
    os.write(log, b"e")
    cursor.fetchone()
    os.write(log, b"f")
"""

ASKS = """
import sqlite3
def work(times):
    connection = sqlite3.connect(":memory:")
    for number in range(times):
        connection.execute("SELECT ?", (number,)).fetchone()
    connection.close()
"""

SELECT = ("SELECT ?", "execute")


@contextmanager
def running(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until its first line. It is killed after the block."""
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout
            child.stdout.readline()
            yield child
        finally:
            child.kill()


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(text: str) -> Path:
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return write


def counts(profile: Profile) -> tuple[int, int, int]:
    """Return executions, fetches, and executions in histograms, of SELECT statements."""
    asked = [a for a in profile.aggregates if a.statement.startswith("SELECT")]
    assert all(count > 0 for a in asked for count in a.histogram.values())
    return (
        sum(a.count for a in asked if a.operation == "execute"),
        sum(a.count for a in asked if a.operation == "fetchone"),
        sum(sum(a.histogram.values()) for a in asked),
    )


@pytest.mark.once
def test_kills_at_random_moments_lose_nothing(script: Script) -> None:
    """The counts equal the program's log, except for the call in progress."""
    path = script(LOGGING)
    chance = random.Random(7)
    for _ in range(12):
        with running(path) as child:
            time.sleep(chance.random() / 5)
            child.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM]))
        log = Path("log").read_bytes()
        executions, fetches, in_histograms = counts(read_profile("x.qprof"))
        assert executions - log.count(b"e") in (0, 1)
        assert fetches - log.count(b"f") in (0, 1)
        assert in_histograms == executions
        Path("x.qprof").unlink()
    assert not regions_of_trace(os.path.abspath("x.qprof"))


@pytest.mark.slow
def test_a_busy_process_is_read_again_and_again(script: Script) -> None:
    """Sums only grow, names are complete, and only calls in progress are missing."""
    path = script(LOGGING)
    seen = [(0, 0, 0)]
    with running(path):
        for _ in range(30):
            before = Path("log").stat().st_size
            profile = read_profile("x.qprof")
            after = Path("log").stat().st_size
            executions, fetches, in_histograms = counts(profile)
            assert before - 2 * 40 <= executions + fetches <= after + 2
            assert executions - 40 <= in_histograms <= after
            assert {a.path[0].function for a in profile.aggregates if a.path} == {"<module>"}
            assert all(a.statement.startswith(("SELECT ?", "(")) for a in profile.aggregates)
            seen.append((executions, fetches, in_histograms))
    assert seen == sorted(seen)
    assert counts(read_profile("x.qprof"))[0] >= seen[-1][0] > 1000


ENDS = {
    "closes all descriptors": "os.closerange(3, 10_000); work(10); os.kill(os.getpid(), 9)",
    "leaves by os._exit": "work(10); os._exit(0)",
    "executes another program": "work(10); os.execv('/bin/true', ['true'])",
    "a fault of its own": "work(10); import ctypes; ctypes.string_at(0)",
    "is aborted": "work(10); os.abort()",
    "cannot import any more": "work(10); import sys; sys.path[:] = []; sys.meta_path[:] = []",
    "changes its directory": "os.chdir('/'); work(10); os._exit(1)",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.repeats
def test_however_a_process_ends(queryprof: Run, script: Script, end: str) -> None:
    path = script(
        f"{ASKS}import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        f"work(5)\n{ENDS[end]}\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert by_operation(read_profile("x.qprof"))[SELECT] == 15


def test_a_killed_process_ran_until_its_command_ended(queryprof: Run, script: Script) -> None:
    """Its run does not end with its last call."""
    ends = (
        "import os, signal, time\nwork(1)\ntime.sleep(0.3)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", script(ASKS + ends))
    (process,) = read_profile("x.qprof").processes
    assert not process.clean_end
    assert process.wall_ns > 300_000_000


def test_a_process_that_is_killed_early_has_counters(queryprof: Run, script: Script) -> None:
    """Counters are read at intervals, which start soon after the process."""
    text = (
        "import os, signal, sqlite3, time\nconnection = sqlite3.connect(':memory:')\nend ="
        " time.monotonic() + 0.2\nwhile time.monotonic() < end:\n    connection.execute('SELECT"
        " 1')\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", script(text))
    selects = [one for one in read_profile("x.qprof").aggregates if one.statement == "SELECT ?"]
    assert sum(one.counted for one in selects) > 0


def test_an_end_that_can_import_nothing_leaves_its_trace_to_the_report(
    script: Script, queryprof: Run
) -> None:
    path = script(
        f"import queryprof\nqueryprof.install('x.qprof')\n{ASKS}import sys\nwork(10)\nsys.path[:] ="
        " []; sys.meta_path[:] = []; sys.path_hooks[:] = []; sys.path_importer_cache.clear()\n"
    )
    result = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert result.stderr.startswith("queryprof: the trace is not written")
    assert result.stderr.endswith("x.qprof` writes it later\n")
    assert result.stderr.count("\n") == 1
    assert not Path("x.qprof").exists()
    assert queryprof("report", "x.qprof").returncode == 0
    assert by_operation(read_profile("x.qprof"))[SELECT] == 10


def test_a_missing_directory_is_reported(script: Script, queryprof: Run) -> None:
    """The message comes once. The recording is kept until the directory exists."""
    path = script(
        "import os,"
        f" queryprof\nos.mkdir('later')\nqueryprof.install('later/x.qprof')\n{ASKS}os.rmdir('later')\nwork(10)\n"
    )
    result = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert re.fullmatch(
        r"queryprof: the trace is not written: \S*x.qprof: no directory \S*later;"
        r" `queryprof report \S*x.qprof`"
        r" writes it later, once the directory exists\n",
        result.stderr,
    )
    Path("later").mkdir()
    assert queryprof("report", "later/x.qprof").returncode == 0
    assert by_operation(read_profile("later/x.qprof"))[SELECT] == 10


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root")
def test_a_process_that_changes_its_root(queryprof: Run, script: Script) -> None:
    path = script(f"{ASKS}import os\nwork(5)\nos.mkdir('root'); os.chroot('root'); work(10)\n")
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(read_profile("x.qprof"))[SELECT] == 15


def test_a_zombie_is_dead(script: Script) -> None:
    """It is a killed child that its parent has not waited for."""
    path = script(
        f"import queryprof\nqueryprof.install('x.qprof')\n{ASKS}work(10)\n"
        "print('asked', flush=True)\nwhile True: pass\n"
    )
    child = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    try:
        assert child.stdout.readline() == "asked\n"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert by_operation(read_profile("x.qprof"))[SELECT] == 10
        assert Path("x.qprof").exists()
    finally:
        child.wait()
        child.stdout.close()


def test_workers_of_a_pool_that_is_ended_by_a_signal(queryprof: Run, script: Script) -> None:
    """`with multiprocessing.Pool()` does this."""
    path = script(
        f"{ASKS}import multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(4) as pool:\n"
        "        pool.map(work, [10] * 40, chunksize=1)\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(read_profile("x.qprof"))[SELECT] == 400


@pytest.mark.slow
def test_many_short_lived_children(queryprof: Run, script: Script) -> None:
    """Their regions are taken while the command runs."""
    path = script(
        f"{ASKS}import os\nwork(1)\n"
        "for _ in range(300):\n"
        "    if os.fork() == 0:\n        work(3)\n        os._exit(0)\n"
        "    os.wait()\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert (result.returncode, result.stderr) == (0, "")
    profile = read_profile("x.qprof")
    assert by_operation(profile)[SELECT] == 901
    assert len(profile.processes) == 301


@pytest.mark.slow
def test_children_that_nobody_collects(script: Script) -> None:
    """A few regions stay in memory. The others are on disk until their parent ends."""
    path = script(
        f"{ASKS}import os, queryprof\nqueryprof.install('x.qprof')\nwork(1)\n"
        "for _ in range(40):\n"
        "    if os.fork() == 0:\n        work(3)\n        os._exit(0)\n"
        "    os.wait()\n"
        "print('forked', flush=True)\ninput()\n"
    )
    with subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        parent.stdout.readline()
        trace = os.path.abspath("x.qprof")
        assert len(regions_of_trace(trace)) < 20
        assert len(regions_of_trace(trace)) + len(checkpoints_of_trace(trace)) == 41
        parent.communicate("\n")
    assert not regions_of_trace(trace)
    assert not checkpoints_of_trace(trace)
    asked = [by_operation(read_profile(str(name)))[SELECT] for name in Path().glob("*.qprof")]
    assert sorted(asked) == [1, *[3] * 40]


@pytest.mark.slow
def test_a_full_table_is_written_out(queryprof: Run, script: Script) -> None:
    """Nothing is folded, and nothing is counted twice."""
    path = script(
        "import sqlite3\n"
        "connection = sqlite3.connect(':memory:')\n"
        "for number in range(25_000):\n"
        "    connection.execute(f'SELECT {number} AS n{number}').fetchone()\n"
        "for number in range(25_000):\n"
        "    connection.execute(f'SELECT {number} AS n{number}').fetchone()\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert (result.returncode, result.stderr) == (0, "")
    profile = read_profile("x.qprof")
    assert counts(profile) == (50_000, 50_000, 50_000)
    (process,) = profile.processes
    assert (process.folded_calls, process.folded_statements) == (0, 0)
    assert len(profile.aggregates) > 100_000


MOUNTS = {"no room": "size=300k", "hardly any": "size=8k"}


@pytest.mark.once
@pytest.mark.parametrize("room", MOUNTS)
@pytest.mark.repeats
def test_shared_memory_without_room(script: Script, room: str) -> None:
    """The program is not affected. Rows that do not fit are counted together."""
    path = script(
        "import sqlite3\n"
        "connection = sqlite3.connect(':memory:')\n"
        "for number in range(3000):\n"
        "    connection.execute(f'SELECT {number} AS n{number}').fetchone()\n"
        "print('done')\n"
    )
    command = (
        f"mount -t tmpfs -o {MOUNTS[room]} none {SHARED_MEMORY}"
        f" && {shutil.which('queryprof', path=os.path.dirname(sys.executable))}"
        f" run --no-report -o x.qprof {path}"
    )
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command], capture_output=True, text=True, check=False
    )
    if "unshare" in result.stderr or "mount:" in result.stderr:
        pytest.skip("may not mount")
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
    profile = read_profile("x.qprof")
    assert sum(a.count for a in profile.aggregates if a.operation == "execute") == 3000
    (process,) = profile.processes
    assert process.clean_end


@pytest.mark.slow
def test_threads_with_a_name_each(queryprof: Run, script: Script) -> None:
    """Each request has its own thread: later names are kept apart without their numbers."""
    path = script(
        f"{ASKS}import threading\n"
        "for _ in range(600):\n"
        "    thread = threading.Thread(target=work, args=(2,))\n"
        "    thread.start()\n"
        "    thread.join()\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", path)
    profile = read_profile("x.qprof")
    assert by_operation(profile)[SELECT] == 1200
    names = {a.thread.name for a in profile.aggregates}
    assert "Thread-* (work)" in names
    assert len(names) < 70


@pytest.mark.slow
def test_copies_on_the_disk(script: Script) -> None:
    """Without shared memory, a kill loses at most everything since the last copy."""
    path = script(
        "import os, time, queryprof, queryprof.collect.target, queryprof.recorder.session\n"
        "queryprof.recorder.session.CHECKPOINT_INTERVAL_S = 0.5\n"
        "queryprof.collect.target.memory_directories = lambda: []\n"
        f"{ASKS}queryprof.install('x.qprof')\n"
        "began = time.monotonic()\n"
        "for turn in range(10**9):\n"
        "    work(10)\n"
        "    print(turn, time.monotonic() - began, flush=True)\n"
    )
    with open("turns", "w") as output:
        child = subprocess.Popen([sys.executable, path], stdout=output)
        time.sleep(5)
        child.kill()
        child.wait()
    turns = [float(line.split()[1]) for line in Path("turns").read_text().splitlines()[:-1]]
    assert checkpoints_of_trace(os.path.abspath("x.qprof"))
    asked = by_operation(read_profile("x.qprof"))[SELECT]
    assert not checkpoints_of_trace(os.path.abspath("x.qprof"))
    copied = sum(1 for seconds in turns if seconds < turns[-1] - 2.5)
    # The last line may be whole, and another turn may have begun.
    assert 10 * copied <= asked <= 10 * (len(turns) + 2)
    assert copied > 100
