"""The recordings of killed processes become traces: complete and once, whoever else reads or blocks
them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from collect import killed_programs
from collect.killed_programs import (
    DIES,
    INSTALLS,
    TAKES_ALL_DESCRIPTORS,
    Script,
    asked,
    asked_in_all,
    killed,
)

from conftest import QUERYPROF, Run
from queryprof.collect.convert import RegionConversion
from queryprof.collect.reader import read_profile
from queryprof.errors import TraceError
from queryprof.recorder import autoload
from queryprof.region.region_files import SHARED_MEMORY, regions_of_trace
from queryprof.trace.store import TraceStore

script = killed_programs.script

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
]


def test_a_bad_region_costs_itself_alone(queryprof: Run, script: Script) -> None:
    """Another file looks like one of the recording's regions."""
    path = script(
        "work(5)\n"
        "mine = next(name for name in os.listdir('/dev/shm') if f'-{os.getpid()}-' in name)\n"
        "other = '-'.join([*mine.split('-')[:3], '7', '0'])\n"
        "os.close(os.open(f'/dev/shm/{other}', os.O_CREAT | os.O_WRONLY, 0o600))\n"
        "print(other)\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    other = Path(SHARED_MEMORY, result.stdout.strip())
    other.unlink()
    assert result.returncode == 0
    assert result.stderr == f"queryprof: skipped: {other}: not a queryprof recording\n"
    assert asked() == 5


@contextmanager
def runner(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start `queryprof run` with a program that has printed a line. Kill it after the block."""
    command = [str(QUERYPROF), "run", "-o", "x.qprof", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            assert run.stdout
            run.stdout.readline()
            yield run
        finally:
            run.kill()


@pytest.mark.slow
def test_a_killed_runner(queryprof: Run, script: Script) -> None:
    """Its program continues. Its earlier and its later queries are all found."""
    path = script(
        "work(5)\n"
        "if not os.fork():\n"
        "    work(7)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(os.getpid(), flush=True)\n"
        "while not os.path.exists('end'): time.sleep(0.01)\n"
        "work(10)\n"
        "open('ended', 'w').close()\n"
    )
    with runner(path) as run:
        run.kill()
        run.wait()
        assert asked() == 12
        Path("end").touch()
        while not Path("ended").exists():
            time.sleep(0.01)
    messages = ""
    for _ in range(1000):
        if Path("x.qprof").exists():
            break
        messages += queryprof("report", "x.qprof").stderr  # its process may not have ended yet
    assert "recovered an unsaved recording" in messages
    assert asked() == 22
    assert not list(Path().glob("*.parts"))
    assert not queryprof("report", "x.qprof").stderr


def test_a_killed_runner_s_directory_waits_for_its_command(queryprof: Run, script: Script) -> None:
    """It waits while a process of the command runs, which may start further Pythons."""
    path = script("work(5)\n")
    later = script("work(7)\n").rename("later.py")
    path = script("work(5)\n")
    python = sys.executable
    shell = f"{python} {path}; echo 1; until [ -e end ]; do sleep 0.01; done; {python} {later}; touch ended"
    command = [str(QUERYPROF), "run", "-o", "x.qprof", "sh", "-c", shell]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        run.stdout.readline()
        run.kill()
        run.wait()
        assert asked() == 5
        Path("end").touch()
        while not Path("ended").exists():
            time.sleep(0.01)
    queryprof("report", "x.qprof")
    assert asked() == 12


def test_two_interrupts(script: Script) -> None:
    """A second Ctrl-C while the trace is written does not lose the trace."""
    path = script("work(5)\nprint(1, flush=True)\nwhile True: work(5)\n")
    for pause in (0.0, 0.01, 0.05):
        command = [str(QUERYPROF), "run", "--no-report", "-o", "x.qprof", str(path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        ) as run:
            assert run.stdout
            run.stdout.readline()
            os.killpg(run.pid, signal.SIGINT)
            time.sleep(pause)
            os.killpg(run.pid, signal.SIGINT)
            _, errors = run.communicate(timeout=60)
        assert run.returncode == -signal.SIGINT, errors
        assert asked() >= 5
        Path("x.qprof").unlink()


@pytest.mark.slow
def test_signals_close_together(script: Script) -> None:
    """The second signal also reaches the command, whichever thread of the runner receives it."""
    path = script(
        "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n"
        "print(1, flush=True)\nwhile True: signal.pause()\n"
    )
    command = [str(QUERYPROF), "run", "--no-report", "-o", "x.qprof", str(path)]
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    for _ in range(8):
        for run in runs:
            assert run.stdout
            run.stdout.readline()
            run.send_signal(signal.SIGINT)
            run.send_signal(signal.SIGTERM)
            run.communicate(timeout=60)
            assert run.returncode == -signal.SIGTERM
        runs = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(2)
        ]
    for run in runs:
        run.terminate()
        run.communicate(timeout=60)


@pytest.mark.slow
def test_many_readers_at_once(script: Script) -> None:
    """Twenty processes were killed. The first reader recovers each of them."""
    path = script(
        f"{INSTALLS}for number in range(20):\n"
        "    if not os.fork():\n"
        f"        work(3)\n        {DIES}"
        "    os.wait()\n"
        f"work(1)\n{DIES}"
    )
    killed(path)
    command = [str(QUERYPROF), "report", "x.qprof"]
    readers = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    for reader in readers:
        reader.wait()
    assert not regions_of_trace("x.qprof")
    assert asked_in_all() == 61


def test_what_cannot_be_removed_is_brought_in_once(script: Script) -> None:
    killed(script(f"{INSTALLS}work(5)\n{DIES}"))
    (region,) = regions_of_trace("x.qprof")
    shutil.copy2(region, "kept")
    assert asked() == 5
    shutil.copy2("kept", region)
    os.chmod(region, 0o600)
    assert asked() == 5
    assert [str(path) for path in Path().glob("*.qprof")] == ["x.qprof"]
    assert not regions_of_trace("x.qprof")


def test_a_directory_of_two_names(script: Script) -> None:
    os.mkdir("real")
    os.symlink("real", "link")
    killed(script(f"import queryprof\nqueryprof.install('link/x.qprof')\nwork(5)\n{DIES}"))
    assert asked("real/x.qprof") == 5


@pytest.mark.parametrize("end", ["", DIES])
@pytest.mark.repeats
def test_a_mask_that_takes_every_right(queryprof: Run, script: Script, end: str) -> None:
    queryprof("run", "--no-report", "-o", "x.qprof", script(f"os.umask(0o777)\nwork(5)\n{end}"))
    assert asked() == 5


def test_the_file_is_removed_from_outside(queryprof: Run, script: Script) -> None:
    """The end of a session may remove it (RemoveIPC of logind)."""
    path = script(
        "work(5)\n"
        "for name in os.listdir('/dev/shm'):\n"
        "    if f'-{os.getpid()}-' in name: os.unlink(f'/dev/shm/{name}')\n"
        "work(5)\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert asked() == 10


@pytest.mark.slow
def test_no_descriptor_to_spare_at_the_first_call(queryprof: Run, script: Script) -> None:
    path = script(
        "connection = sqlite3.connect(':memory:')\n"
        f"{TAKES_ALL_DESCRIPTORS}"
        "connection.execute('SELECT ?', (1,))\n"
        "for file in taken: os.close(file)\n"
        "for turn in range(15):\n"
        "    time.sleep(0.1)\n"
        "    connection.execute('SELECT ?', (1,))\n"
        f"{DIES}"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert asked() == 16


def test_standard_streams_that_are_closed(queryprof: Run, script: Script) -> None:
    """No file of queryprof gets the number of one of them, to which the program may write."""
    path = script(
        "for number in (0, 1, 2): os.close(number)\n"
        "work(5)\n"
        "import queryprof\n"
        "seen = os.open('/dev/null', os.O_RDONLY)\n"
        "open('seen', 'w').write(str(seen))\n"
    )
    queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert asked() == 5
    assert Path("seen").read_text() == "0"


def test_a_working_directory_that_is_gone(queryprof: Run, script: Script) -> None:
    path = script("work(5)\n")
    os.mkdir("gone")
    command = (
        f"cd gone && rmdir ../gone && exec {QUERYPROF} run --no-report -o {Path.cwd()}/x.qprof"
        f" {sys.executable} {path}"
    )
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert asked() == 5


def test_no_memory_in_a_forked_child(queryprof: Run, script: Script) -> None:
    """The child is not recorded, and prints the reason. Its parent is recorded."""
    path = script(
        "import resource\n"
        "work(5)\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20),) * 2)\n"
        "if not os.fork():\n"
        "    work(7)\n"
        "    os._exit(0)\n"
        "assert os.wait()[1] == 0\n"
        "work(5)\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert result.returncode == 0
    assert result.stderr == "queryprof: a forked child is not recorded: not enough memory\n"
    assert asked() == 10


def test_a_limit_of_file_sizes_with_its_signal(queryprof: Run, script: Script) -> None:
    """Without memory for a region the trace is written at the end. A write beyond the limit would
    kill the process.
    """
    path = script(
        "import resource\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))\n"
        "work(5)\nprint('done')\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", path)
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert "the trace is not written" in result.stderr
    assert "the file size limit (ulimit -f) is too low for it\n" in result.stderr


def test_a_process_id_that_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace of an earlier child of the same recording stays. A trace of an earlier recording is
    replaced.
    """
    trace = str(tmp_path / "x.qprof")
    monkeypatch.setattr(os, "getpid", lambda: 501)
    for began_ns, expected in ((time.time_ns() - 10**10, "x-501-2.qprof"), (2**62, "x-501.qprof")):
        TraceStore(str(tmp_path / "x-501.qprof")).close()
        monkeypatch.setenv(autoload.FIRST_VARIABLE, f"7.{began_ns}")
        assert autoload._trace_path(trace) == str(tmp_path / expected)
        (tmp_path / "x-501.qprof").unlink(missing_ok=True)


def test_an_unsound_region_leaves_nothing(script: Script, tmp_path: Path) -> None:
    """Rows added before the damage was found are removed."""
    killed(script(f"{INSTALLS}work(5)\n{DIES}"))
    (path,) = regions_of_trace("x.qprof")
    store = TraceStore(str(tmp_path / "y.qprof"))

    def unsound(*_: object) -> None:
        raise ValueError("unsound")

    from queryprof.region.region import opened_region

    with opened_region(path) as region:
        store.add_intervals = unsound  # type: ignore[method-assign]
        with pytest.raises(TraceError, match="is damaged: unsound"):
            RegionConversion(store).add(region)
        del store.add_intervals
        RegionConversion(store).add(region)
    store.close()
    assert asked("y.qprof") == 5
    assert len(read_profile("y.qprof").processes) == 1


POOL = """
import multiprocessing, sqlite3

def work(number):
    return sqlite3.connect(":memory:").execute("SELECT ?", (number,)).fetchone()[0]

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:  # it terminates its workers
        print(sum(pool.map(work, range(20), chunksize=1)))
"""


def test_spawned_workers_that_are_terminated_are_brought_in(tmp_path: Path) -> None:
    """Workers' frames count as the program's code, even when started from another directory."""
    (tmp_path / "app.py").write_text(POOL)
    place = tmp_path / "elsewhere"
    place.mkdir()
    environment = {**os.environ, "QUERYPROF": "t.qprof", "QUERYPROF_ROOTS": ""}
    result = subprocess.run(
        [sys.executable, "../app.py"],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert (result.stdout, result.stderr) == ("190\n", "")
    traces = sorted(place.glob("t*.qprof"))
    found = [one for path in traces for one in read_profile(str(path)).aggregates]
    executed = [one for one in found if one.operation == "execute"]
    assert sum(one.count for one in executed) == 20
    frames = {(one.path[0].function, one.path[0].kind) for one in executed}
    assert frames == {("work", "user")}
    assert regions_of_trace(str(place / "t.qprof")) == []
