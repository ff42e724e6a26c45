"""Files that look like a recording's, but are foreign, damaged or forged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Run, by_operation
from queryprof.collect import keep, recovery
from queryprof.collect.reader import read_profile
from queryprof.region.region import Region, opened_region
from queryprof.region.region_files import SHARED_MEMORY, process_id_scope, regions_of_trace

pytestmark = [
    pytest.mark.skipif(not Path(SHARED_MEMORY).is_dir(), reason="needs shared memory"),
    pytest.mark.once,
]

PROGRAM = """
import os, shutil, signal, sqlite3, sys
import queryprof
from queryprof.recorder.session import session
queryprof.install(sys.argv[1])
connection = sqlite3.connect(":memory:")
def work(times):
    for number in range(times):
        connection.execute("SELECT ?", (number,)).fetchone()
"""
DIES = "os.kill(os.getpid(), signal.SIGKILL)\n"
SELECT = ("SELECT ?", "execute")

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run a program that records itself to a trace."""

    def run(text: str, trace: str = "x.qprof") -> subprocess.CompletedProcess[str]:
        path = tmp_path / "program.py"
        path.write_text(PROGRAM + text)
        command = [sys.executable, str(path), trace]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def asked(path: str = "x.qprof") -> int:
    return by_operation(read_profile(path))[SELECT]


def test_a_copy_does_not_choose_where_its_trace_is_written(
    program: Program, queryprof: Run
) -> None:
    os.mkdir("other")
    program(f"work(5)\n{DIES}", "other/new.qprof")
    (region,) = regions_of_trace("other/new.qprof")
    shutil.move(region, "x.qprof.99.abc123.live")
    result = queryprof("report", "x.qprof")
    (written,) = Path().glob("*.qprof")
    assert written.name.startswith("x-")
    assert str(written) in result.stderr
    assert not os.listdir("other")


def test_directories_that_are_not_ours_stay(queryprof: Run) -> None:
    os.mkdir("x.qprof.mine.parts")
    Path("x.qprof.mine.parts", "letter.txt").touch()
    os.mkdir("x.qprof.other.parts")
    Path("x.qprof.other.parts", "runner").write_text("1 1\nanother-host boot 1")
    Path("x.qprof.other.parts", "letter.txt").touch()
    os.mkdir("x.qprof.dead.parts")
    Path("x.qprof.dead.parts", "runner").write_text(f"99999999 1\n{process_id_scope()}")
    Path("x.qprof.dead.parts", "letter.txt").touch()
    assert queryprof("report", "x.qprof").returncode == 2
    assert len(list(Path().glob("*.parts/letter.txt"))) == 3


DAMAGES = {
    "no process id": (b" pid:q:", b" pix:q:"),
    "one count": (b" counts:I:", b" countx:I:"),
    "the header is elsewhere": (b"header 0 ", b"header 9"),
    "a long header": (b"header 0 ", b"header 0 99999999999999"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_header(program: Program, queryprof: Run, damage: str) -> None:
    """Neither the reader nor a program that finds it at its end fails."""
    program(f"work(5)\n{DIES}")
    (region,) = map(Path, regions_of_trace("x.qprof"))
    old, new = DAMAGES[damage]
    data = region.read_bytes()
    with region.open("r+b") as file:
        file.seek(data.index(old))
        file.write(new)
    result = queryprof("report", "x.qprof")
    assert (result.returncode, result.stderr) == (
        2,
        "queryprof: x.qprof: no such trace\n",
    )
    result = program("work(7)\n")
    assert (result.returncode, result.stderr) == (0, "")
    assert asked() == 7
    region.unlink()


def test_of_two_copies_the_later_counts(program: Program) -> None:
    program(f"work(5)\n{DIES}")
    (region,) = map(Path, regions_of_trace("x.qprof"))
    shutil.copy2(region, "x.qprof.7.1.live")
    shutil.copy2(region, "x.qprof.7.2.live")
    at = column_at(region, "alive_unix_ns")
    for name, turn in (("x.qprof.7.1.live", 1), ("x.qprof.7.2.live", 2)):
        patch(Path(name), at, turn.to_bytes(8, "little"))
    with opened_region("x.qprof.7.1.live") as older:
        counts = older.tables["aggregates"]
        patch(Path("x.qprof.7.1.live"), counts.at, bytes(counts.row_bytes * 64))
    region.unlink()
    assert asked() == 5
    assert [str(path) for path in Path().glob("x*")] == ["x.qprof"]


def column_at(path: Path, name: str) -> int:
    with opened_region(str(path)) as region:
        return region._head.columns[name].at


def patch(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_region_is_moved_to_the_disk_wholly_or_not(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(f"work(5)\n{DIES}")
    (region,) = regions_of_trace("x.qprof")
    write = os.pwrite

    def full(file: int, data: bytes, at: int) -> int:
        if at > 10_000:
            raise OSError(28, "No space left on device")
        return write(file, data, at)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        recovery.move_to_disk([region], os.path.abspath("x.qprof"))
        assert regions_of_trace("x.qprof") == [region]
        assert not list(Path().glob("*.live"))
        patched.setattr(os, "pwrite", lambda file, data, at: write(file, data[:5000], at))
        recovery.move_to_disk([region], os.path.abspath("x.qprof"))
    assert not regions_of_trace("x.qprof")
    assert asked() == 5


def test_parts_of_an_earlier_process_with_this_id(program: Program) -> None:
    """Ids are reused, and equal in containers. Parts of others have other names, and stay."""
    program(f"work(5)\nsession.end_part()\n{DIES}")
    (part,) = (path for path in Path().glob("*.live") if "-" in path.name)
    part.rename("foreign")
    result = program(
        "shutil.copy('foreign', f'x.qprof.{os.getpid()}-0123456789ab-1.live')\n"
        "open(f'x.qprof.{os.getpid()}-2.live', 'w').write('cut off')\n"
        "work(7)\n",
        "y.qprof",
    )
    assert result.stderr == ""
    assert asked("y.qprof") == 7
    assert len([*Path().glob("x.qprof.*.live")]) == 2


def test_killed_before_the_sums_of_a_part_are_emptied(program: Program) -> None:
    """The part has its name, and the region still has the same sums."""
    program(f"work(5)\nsession.end_part()\nwork(7)\n{DIES}")
    (region,) = map(Path, regions_of_trace("x.qprof"))
    patch(region, column_at(region, "part_ended"), bytes(4))
    assert asked() == 5
    assert not list(Path().glob("*.live"))


def test_a_file_system_without_links(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    program(f"work(5)\n{DIES}")
    monkeypatch.setattr(keep.os, "link", refused)
    assert asked() == 5
    assert [str(path) for path in Path().glob("x*")] == ["x.qprof"]


@pytest.mark.slow
def test_a_command_is_read_while_it_runs(queryprof: Run, tmp_path: Path) -> None:
    """The figures are those taken from its children, and those in their memory."""
    path = tmp_path / "many.py"
    path.write_text(
        "import os, sqlite3, subprocess, sys, time\n"
        "connection = sqlite3.connect(':memory:')\n"
        "for number in range(80):\n"
        "    if not os.fork():\n"
        "        connection.execute('SELECT ?', (1,))\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "time.sleep(2.5)\n"
        "connection.execute('SELECT ?', (1,))\n"
        "report = [sys.argv[1], 'report', 'x.qprof', '--format', 'json']\n"
        "environment = {k: v for k, v in os.environ.items() if not k.startswith('QUERYPROF')}\n"
        "done = subprocess.run(report, capture_output=True, text=True, env=environment)\n"
        "open('said', 'w').write(done.stdout)\n"
    )
    command = str(Path(sys.executable).with_name("queryprof"))
    result = queryprof("run", "--no-report", "-o", "x.qprof", path, command)
    assert result.stderr == ""
    found = json.loads(Path("said").read_text())["bottlenecks"]
    runs = [one["totals"]["executions"] for one in found if one["statement"] == "SELECT ?"]
    assert sum(runs) == 81, found
    assert asked() == 81


def test_a_file_that_is_no_trace_is_not_recorded_to(tmp_path: Path) -> None:
    Path("x.qprof").write_text("a letter")
    code = "import queryprof; print(queryprof.is_installed())"
    environment = {**os.environ, "QUERYPROF": "x.qprof", "PYTHONPATH": startup()}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert result.stdout == "False\n"
    assert "is not recorded" in result.stderr
    assert Path("x.qprof").read_text() == "a letter"


def startup() -> str:
    import queryprof.startup

    return str(next(iter(queryprof.startup.__path__)))


def test_own_memory_needs_no_file() -> None:
    """A region of this process is read in place."""
    import queryprof
    from queryprof.core import _core

    with queryprof.profile():
        assert Region(_core.region()).state == 1


@pytest.mark.slow
def test_a_command_is_read_again_and_again(tmp_path: Path) -> None:
    """Its runner takes the regions of its children meanwhile: each child counts once, wherever its
    figures are.
    """
    path = tmp_path / "many.py"
    path.write_text(
        "import os, sqlite3, time\n"
        "connection = sqlite3.connect(':memory:')\n"
        "log = os.open('log', os.O_WRONLY | os.O_CREAT)\n"
        "begun = time.monotonic()\n"
        "while time.monotonic() < begun + 6:\n"
        "    if not os.fork():\n"
        "        connection.execute('SELECT ?', (1,))\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "    os.write(log, b'.')\n"
    )
    command = [str(Path(sys.executable).with_name("queryprof")), "run", "--no-report"]
    looks = 0
    with subprocess.Popen([*command, "-o", "x.qprof", path]) as run:
        while not logged():
            assert run.poll() is None
            time.sleep(0.01)
        while run.poll() is None:
            before = logged()
            seen = by_operation(read_profile("x.qprof"))["SELECT ?", "execute"]
            assert before <= seen <= logged() + 1
            looks += 1
    assert run.returncode == 0
    assert looks > 3
    assert by_operation(read_profile("x.qprof"))["SELECT ?", "execute"] == logged()


def logged() -> int:
    try:
        return Path("log").stat().st_size
    except FileNotFoundError:
        return 0
