"""Writing a trace replaces only an old trace, never another file."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import queryprof
from conftest import QUERYPROF
from queryprof.collect.merge import merge_traces
from queryprof.collect.output_path import prepare_output_path
from queryprof.collect.reader import read_profile
from queryprof.errors import SettingsError, TraceError

pytestmark = pytest.mark.once

ASK = "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1').fetchall(); print('done')"
INSTALL = "import queryprof, sys; queryprof.install(sys.argv[1]); "


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_null(path: Path) -> None:
    """Create a device with the null device's number. The machine's own device is not used."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("device nodes need root")


def make_socket(path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))


@pytest.mark.parametrize("make", [make_fifo, make_null, make_socket, Path.mkdir])
@pytest.mark.repeats
def test_what_is_no_file_stays(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """No command removes a pipe, device, socket or directory, or writes to it."""
    node = tmp_path / "node"
    make(node)
    before = node.lstat()
    with queryprof.profile(tmp_path / "part.qprof"):
        sqlite3.connect(":memory:").close()
    for command in (
        [sys.executable, "-c", INSTALL + ASK, str(node)],
        [QUERYPROF, "run", "-o", str(node), "-c", ASK],
        [QUERYPROF, "merge", str(node), "part.qprof"],
        [
            sys.executable,
            "-c",
            f"{INSTALL}import queryprof\nwith queryprof.profile(sys.argv[1]): pass",
            str(node),
        ],
    ):
        ended = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        after = node.lstat()
        assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode), command
        if command[0] == QUERYPROF and ended.returncode:
            assert ended.returncode == 2
            assert len(ended.stderr.splitlines()) == 1


def test_the_null_device_means_no_trace(tmp_path: Path) -> None:
    """The program runs, its report is printed, and no file is left."""
    device = tmp_path / "null"
    make_null(device)
    ended = subprocess.run(
        [QUERYPROF, "run", "-o", str(device), "-c", ASK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "done\n"
    assert "1 execution of 1" in ended.stderr
    assert "trace:" not in ended.stderr
    with queryprof.profile(device) as recording:
        connection = sqlite3.connect(":memory:")
        connection.execute("SELECT 1")
        connection.close()
    assert recording.path is None
    assert recording.profile.aggregates
    assert os.listdir(tmp_path) == ["null"]


@pytest.mark.parametrize("content", [b"precious", b"SQLite format 3\0" + b"x" * 100])
def test_another_file_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.qprof"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="not a queryprof trace"):
        prepare_output_path(str(path))
    with pytest.raises(TraceError, match="not a queryprof trace"):
        merge_traces(str(path), [])
    assert path.read_bytes() == content


LONG = """
import os, sqlite3, sys, time
c = sqlite3.connect(':memory:')
c.execute('SELECT 1').fetchall()
print('begun', flush=True)
n = 1
while not os.path.exists(sys.argv[1]):
    c.execute('SELECT 1').fetchall(); n += 1; time.sleep(0.001)
print(n)
"""


@pytest.mark.parametrize("runs_already", [False, True])
@pytest.mark.repeats
def test_two_programs_with_one_path(tmp_path: Path, runs_already: bool) -> None:
    """Both traces are kept, whether the programs start together or one after the other."""
    (tmp_path / "p.py").write_text(LONG)
    code = INSTALL + "sys.argv.pop(1); exec(open('p.py').read())"
    command = [sys.executable, "-c", code, "x.qprof", "end"]
    with (
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as first,
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import sys\nif {runs_already}: sys.stdin.readline()\n{code}",
                *command[3:],
            ],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as second,
    ):
        assert first.stdout
        assert second.stdout
        assert second.stdin
        assert first.stdout.readline() == "begun\n"
        second.stdin.write("\n")
        second.stdin.flush()
        assert second.stdout.readline() == "begun\n"
        (tmp_path / "end").touch()
        counts = [one.communicate(timeout=60)[0] for one in (first, second)]
    made = sum(map(int, counts))
    traces = list(tmp_path.glob("*.qprof"))
    assert len(traces) == 2
    kept = [
        a.count for t in traces for a in read_profile(str(t)).aggregates if a.operation == "execute"
    ]
    assert sum(kept) == made


def test_what_a_killed_program_left_is_brought_in_beside_the_next_one(tmp_path: Path) -> None:
    """The next program gets the path."""
    waits = INSTALL + ASK + "; import time; print(flush=True); time.sleep(30)"
    command = [sys.executable, "-c", waits, "x.qprof"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as killed:
        assert killed.stdout
        killed.stdout.readline()
        killed.kill()
    subprocess.run([sys.executable, "-c", INSTALL + ASK, "x.qprof"], cwd=tmp_path, check=True)
    beside = tmp_path / f"x-{killed.pid}.qprof"
    assert sorted(tmp_path.glob("*.qprof")) == sorted([tmp_path / "x.qprof", beside])
    (process,) = read_profile(str(beside)).processes
    assert (process.pid, process.clean_end) == (killed.pid, False)
    (process,) = read_profile(str(tmp_path / "x.qprof")).processes
    assert process.clean_end


def test_an_empty_file_is_taken(tmp_path: Path) -> None:
    """The command mktemp creates such a file."""
    (tmp_path / "x.qprof").touch()
    time.sleep(0.01)
    subprocess.run([sys.executable, "-c", INSTALL + ASK, "x.qprof"], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.glob("*.qprof")] == ["x.qprof"]
    assert read_profile(str(tmp_path / "x.qprof")).aggregates


def test_nothing_is_written_to_a_file_that_got_descriptor_2(tmp_path: Path) -> None:
    """The program closes stderr and opens a file, which contains only the program's bytes."""
    code = (
        "import queryprof, os, sqlite3; queryprof.install('gone/x.qprof'); os.close(2);"
        "f = os.open('own.txt', os.O_RDWR | os.O_CREAT); assert f == 2;"
        "sqlite3.connect(':memory:').execute('SELECT 1'); os.write(f, b'mine')"
    )
    (tmp_path / "gone").mkdir()
    code = code.replace("os.close(2)", "os.rmdir('gone'); os.close(2)")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "own.txt").read_bytes() == b"mine"


NAMES = {
    "a thread": (
        "t = threading.Thread(target=lambda: connect().execute('SELECT 2'), name='w\\udcff');"
        " t.start(); t.join()"
    ),
    "a span": "with queryprof.span('x\\udcff'): connect().execute('SELECT 2')",
    "a file": "exec(compile('connect().execute(\"SELECT 2\")', 'x\\udcff.py', 'exec'))",
    "a note": (
        "connect().execute('SELECT 2 AS \"\\ud800\"') if False else connect().execute('SELECT 2')"
    ),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.repeats
def test_names_that_are_no_utf8_end_nothing(tmp_path: Path, name: str) -> None:
    code = (
        f"{INSTALL}import sqlite3, threading\nconnect = lambda: sqlite3.connect(':memory:')\n"
        f"for _ in range(10): connect().execute('SELECT 1')\n{NAMES[name]}\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "x.qprof"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    counts = [
        a.count
        for a in read_profile(str(tmp_path / "x.qprof")).aggregates
        if a.operation == "execute"
    ]
    assert sum(counts) == 11


def test_a_directory_that_is_no_utf8(tmp_path: Path) -> None:
    """Its code counts as the program's own."""
    odd = os.fsencode(tmp_path) + b"/dir\xff"
    os.mkdir(odd)
    with open(odd + b"/p.py", "w") as file:
        file.write(
            "import queryprof; queryprof.install('x.qprof')\nimport sqlite3\n"
            "def ask(): sqlite3.connect(':memory:').execute('SELECT 1')\nask()\n"
        )
    subprocess.run([sys.executable, "p.py"], cwd=odd, check=True)
    profile = read_profile(os.fsdecode(odd + b"/x.qprof"))
    (aggregate,) = [a for a in profile.aggregates if a.operation == "execute"]
    assert aggregate.path[0].function == "ask"


@pytest.mark.slow
@pytest.mark.usefixtures("installed_plugins")
def test_a_recorded_pytest_has_no_more_warnings(tmp_path: Path) -> None:
    """This includes runs with warnings as errors: pytest would rewrite modules that are already
    imported.
    """
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    for more in ((), ("-W", "error")):
        ended = subprocess.run(
            [
                QUERYPROF,
                "run",
                "--no-report",
                "-o",
                "x.qprof",
                "-m",
                "pytest",
                "-q",
                *more,
                "-p",
                "no:asyncio",
                "-p",
                "no:cacheprovider",
                "test_a.py",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "warning" not in ended.stdout


def running_trace(path: Path, **columns: object) -> None:
    """Return a trace without an end of its process: by default this process."""
    with queryprof.profile(path):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("SELECT 1").fetchall()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE process SET clean_end = 0")
        for column, value in columns.items():
            connection.execute(f"UPDATE process SET {column} = ?", (value,))
    connection.close()


def test_a_process_of_another_host_may_still_write(tmp_path: Path) -> None:
    """Its state is unknown here, like that of a container with the same volume."""
    path = tmp_path / "x.qprof"
    running_trace(path, host="elsewhere", pid=2**22 + 1)
    before = path.read_bytes()
    assert prepare_output_path(str(path)) == str(tmp_path / f"x-{os.getpid()}.qprof")
    assert path.read_bytes() == before


def test_a_process_id_that_was_given_again(tmp_path: Path) -> None:
    """A process that started long after the recording is another one."""
    path = tmp_path / "x.qprof"
    running_trace(path)
    assert prepare_output_path(str(path)) != str(path)
    running_trace(path, start_unix_ns=10**18)
    assert prepare_output_path(str(path)) == str(path)
    assert not path.exists()


def test_a_trace_that_is_being_flushed_stays(tmp_path: Path) -> None:
    """A locked file is being written, whatever can be read from it."""
    path = tmp_path / "x.qprof"
    running_trace(path, host="elsewhere")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE process SET clean_end = 1")
    connection.execute("BEGIN EXCLUSIVE")
    assert prepare_output_path(str(path)) != str(path)
    connection.execute("ROLLBACK")
    assert prepare_output_path(str(path)) == str(path)
    connection.close()


def test_a_file_named_as_a_journal_stays(tmp_path: Path) -> None:
    """SQLite would delete it. The journal of a killed process is removed."""
    path = tmp_path / "x.qprof"
    journal = tmp_path / "x.qprof-journal"
    journal.write_bytes(b"precious")
    with pytest.raises(TraceError, match="and is not a trace"):
        prepare_output_path(str(path))
    assert journal.read_bytes() == b"precious"
    for content in (bytes.fromhex("d9d505f920a163d7") + b"pages", bytes(512)):
        journal.write_bytes(content)
        prepare_output_path(str(path))
        assert not journal.exists()


def test_a_link_is_replaced_and_not_its_target(tmp_path: Path) -> None:
    target, link = tmp_path / "old.qprof", tmp_path / "x.qprof"
    with queryprof.profile(target):
        pass
    link.symlink_to(target)
    before = target.read_bytes()
    assert prepare_output_path(str(link)) == str(link)
    assert not link.is_symlink()
    assert target.read_bytes() == before


def test_settings_are_read_before_an_old_trace_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that cannot be recorded has lost no trace."""
    with queryprof.profile(tmp_path / "x.qprof"):
        pass
    (tmp_path / "pyproject.toml").write_text('[tool.queryprof]\nstall_ms = "no"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError):
        queryprof.install("x.qprof")
    with pytest.raises(SettingsError), queryprof.profile("x.qprof"):
        pass
    assert read_profile("x.qprof").processes


def test_a_full_disk_under_a_report(tmp_path: Path) -> None:
    """The error is one line, with the status of an error."""
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    except PermissionError:
        pytest.skip("device nodes need root")
    with queryprof.profile(tmp_path / "x.qprof"):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("SELECT 1").fetchall()
    with full.open("w") as output:
        ended = subprocess.run(
            [QUERYPROF, "report", "x.qprof"],
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1), ended.stderr
