"""`queryprof attach`: programs that run already are recorded for a while, and are as before."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from attach.running_programs import OBEYS, STANDBY, Command, attached, running

from conftest import QUERYPROF, Run, by_operation
from queryprof.attachment import attaching, messages
from queryprof.attachment.attaching import AttachError, attach
from queryprof.autoload import Runner
from queryprof.collect.reader import read_profile
from queryprof.region.region_files import regions_of

SELECT = ("SELECT ?", "execute")
BUSY = OBEYS.replace(
    "print(os.getpid()",
    """
import threading
counts, is_over = [0] * 4, threading.Event()
def always(number):
    own = sqlite3.connect(":memory:")
    while not is_over.is_set():
        own.execute("SELECT ?, 'thread'", (number,)).fetchone()
        counts[number] += 1
threads = [threading.Thread(target=always, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
def finish():
    is_over.set()
    for thread in threads: thread.join()
    return sum(counts)
print(os.getpid()""",
)
"""Threads execute all the time."""

POLLS = OBEYS.replace(
    "for line in sys.stdin:",
    """
import queue, threading
lines = queue.Queue()
threading.Thread(target=lambda: [*map(lines.put, sys.stdin), lines.put("")]).start()
def next_line():
    while True:
        try:
            return lines.get(timeout=0.01)
        except queue.Empty:
            pass
while line := next_line():""",
)
"""Its main thread runs Python now and then while it waits."""

BY_DEBUGGER = hasattr(sys, "remote_exec")

METHODS = "[sqlite3.Cursor.execute, sqlite3.Connection.execute, type(sqlite3.Cursor.execute)]"


def until_off(program) -> None:
    while program("is_on()") == "True":
        pass


def test_what_it_does_meanwhile_is_counted(queryprof: Run) -> None:
    with running(**STANDBY) as program:
        program("work(5)")
        before = program(METHODS), program("sorted(os.environ.items())")
        with attached(program, "--no-report"):
            program("work(40)")
            assert program("scan()") == "9"
        assert (program(METHODS), program("sorted(os.environ.items())")) == before
        assert program("is_on()") == "False"
        program("work(6)")
        assert program.end() == ""
    profile = read_profile("x.qprof")
    counts = by_operation(profile)
    assert counts[SELECT] == 40
    assert counts["SELECT a FROM t WHERE a + ? > ?", "execute"] == 1
    (scan,) = (a for a in profile.aggregates if a.statement.endswith("> ?") and a.vm_steps)
    assert scan.path[0].function == "scan"  # on a connection that was open before
    assert [one.clean_end for one in profile.processes] == [True]
    assert not list(Path().glob(".*")) + list(Path().glob("x.qprof.*"))
    shown = queryprof("report", "x.qprof").stdout
    assert "41 executions" in " ".join(shown.split())


def test_it_reports_what_it_has_recorded() -> None:
    with running(**STANDBY) as program, attached(program) as command:
        program("work(3)")
        said = command.end()
    assert "3 executions" in " ".join(said.split())
    assert "trace: x.qprof" in said


def test_again_and_again() -> None:
    with running(**STANDBY) as program:
        for number in range(1, 4):
            with attached(program, "--no-report", output=f"{number}.qprof"):
                program(f"work({number})")
            assert by_operation(read_profile(f"{number}.qprof"))[SELECT] == number
        assert program.end() == ""


def test_in_standby_nothing_is_in_place_but_the_signal() -> None:
    with running(**STANDBY) as program:
        names = program("sorted(m for m in sys.modules if m.startswith('queryprof'))")
        assert "queryprof.session" not in names
        assert "_core'" not in names
        assert program("__import__('threading').active_count()") == "1"
        caught = program("open('/proc/self/status').read().split('SigCgt:')[1].split()[0]")
    with running() as bare:
        plain = bare("open('/proc/self/status').read().split('SigCgt:')[1].split()[0]")
    assert int(caught, 16) == int(plain, 16) | 1 << (messages.SIGNAL - 1)


def test_several_are_one_trace() -> None:
    with running(**STANDBY) as one, running(**STANDBY) as other:
        command = Command(one.pid, other.pid, "-o", "x.qprof", "--no-report")
        one("work(3)")
        other("work(4)")
        command.end()
    profile = read_profile("x.qprof")
    assert {p.pid for p in profile.processes} == {one.pid, other.pid}
    assert by_operation(profile)[SELECT] == 7


def test_for_a_time() -> None:
    with running(**STANDBY) as program:
        command = Command(program.pid, "--for", "50ms", "-o", "x.qprof", "--no-report")
        assert "for 0.05 s" in command.said
        command.result()
        assert program("is_on()") == "False"
    assert read_profile("x.qprof").processes[0].wall_ns >= 50_000_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_with_its_trace(number: int) -> None:
    with running(**STANDBY) as program, attached(program, "--no-report") as command:
        program("work(2)")
        command.end(number)
        assert program("is_on()") == "False"
    assert by_operation(read_profile("x.qprof"))[SELECT] == 2


def test_a_killed_command_ends_the_recording() -> None:
    with running(**STANDBY) as program:
        with attached(program) as command:
            program("work(2)")
            command.process.kill()
            command.process.communicate(timeout=60)
            until_off(program)
        with attached(program, "--no-report", output="y.qprof"):
            program("work(3)")
        assert program.end() == ""
    assert by_operation(read_profile("y.qprof"))[SELECT] == 3


@pytest.mark.parametrize("ends", ["sys.exit()", "os.kill(os.getpid(), 9)"])
def test_a_program_that_ends_meanwhile(ends: str) -> None:
    with running(**STANDBY) as program, attached(program, "--no-report") as command:
        program("work(4)")
        program(ends)
        command.result()
        program.process.communicate(timeout=60)
    assert by_operation(read_profile("x.qprof"))[SELECT] == 4


@pytest.mark.parametrize("options", [(), ("-W", "error::DeprecationWarning")])
def test_a_fork_meanwhile(options: tuple[str, ...]) -> None:
    """The child is not recorded, and Python finds no thread to warn of."""
    with running(OBEYS, *options, **STANDBY) as program:
        with attached(program, "--no-report"):
            for _ in range(3):
                program("work(2)")
                assert program("forks()") == "20"
            program("work(2)")
        assert program("forks()") == "20"
        assert program.end() == ""
    profile = read_profile("x.qprof")
    assert by_operation(profile)[SELECT] == 8
    assert len(profile.processes) == 1


def test_two_commands_at_once() -> None:
    with running(**STANDBY) as program:
        with attached(program, "--no-report"):
            program("work(1)")
            other = Command(program.pid, "-o", "y.qprof")
            assert other.said.endswith("another command is attached to it\n")
            other.result(2)
            program("work(1)")
    assert by_operation(read_profile("x.qprof"))[SELECT] == 2
    assert not list(Path().glob("y.*"))


def test_a_program_that_is_recorded_already() -> None:
    install = "__import__('queryprof').install('own.qprof')"
    with running(**STANDBY) as program:
        program(install)
        other = Command(program.pid)
        assert "is recorded already: see `queryprof top`" in other.said
        other.result(2)
        assert program("is_on()") == "True"
        program("work(2)")
        assert program.end() == ""
    assert by_operation(read_profile("own.qprof"))[SELECT] == 2


def test_a_program_that_records_itself_meanwhile() -> None:
    """What it wants goes on after the command's end, and what was before is in its trace."""
    with running(**STANDBY) as program:
        with attached(program, "--no-report"):
            program("work(2)")
            program("__import__('queryprof').install('own.qprof')")
            program("work(3)")
        assert program("is_on()") == "True"
        program("work(4)")
        program.end()
    assert by_operation(read_profile("own.qprof"))[SELECT] == 9


def test_an_event_loop_that_runs_already(queryprof: Run) -> None:
    program = """
import asyncio, os, sqlite3, sys
connection = sqlite3.connect(":memory:")
HEAVY = "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n LIMIT ?) SELECT sum(a) FROM n"
def heavy(rows):
    return connection.execute(HEAVY, (rows,)).fetchone()[0] > 0
async def main():
    loop = asyncio.get_running_loop()
    print(os.getpid(), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(eval(line), flush=True)
asyncio.run(main())
"""
    with running(program, **STANDBY) as running_loop:
        with attached(running_loop, "--no-report"):
            assert running_loop("heavy(1_500_000)") == "True"
            running_loop("1")
        running_loop.end()
    (loop,) = read_profile("x.qprof").loops
    assert loop.stall_events


def test_top_attaches(queryprof: Run) -> None:
    with running(BUSY, **STANDBY) as program:
        result = queryprof("top", "--attach", "--once", "--json", "--every", "100ms", program.pid)
        assert (result.returncode, result.stderr) == (0, "")
        assert f'"pid": {program.pid}' in result.stdout
        assert program("is_on()") == "False"
        program("finish()")
        assert program.end() == ""
    assert queryprof("top", "--attach").returncode == 2


# -- what cannot be attached to -----------------------------------------------------------------


def refusal(pid: int) -> str:
    with pytest.raises(AttachError) as error:
        attach(pid, Runner(os.getpid(), f"{os.getcwd()}/").variable)
    return str(error.value)


def test_what_is_not_there_or_not_in_standby(queryprof: Run) -> None:
    with running() as program:
        if not BY_DEBUGGER:
            result = queryprof("attach", program.pid)
            assert result.returncode == 2
            assert result.stderr.startswith(f"queryprof: process {program.pid} is not in standby")
            assert len(result.stderr.splitlines()) == 1
        assert program.end() == ""
    assert refusal(program.pid) == f"no process {program.pid} runs"
    assert refusal(2**40) == f"no process {2**40} runs"
    assert not list(Path().glob("*.qprof*"))


@pytest.mark.skipif(not BY_DEBUGGER, reason="Python 3.14 and newer have sys.remote_exec")
def test_a_program_without_standby() -> None:
    with running(POLLS) as program:
        for number in (3, 4):
            program("work(1)")
            with attached(program, "--no-report"):
                program(f"work({number})")
            assert by_operation(read_profile("x.qprof"))[SELECT] == number
        assert program.end() == ""


@pytest.mark.skipif(not BY_DEBUGGER, reason="Python 3.14 and newer have sys.remote_exec")
def test_a_program_without_standby_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 0.05)
    with running(POLLS) as program:
        os.kill(program.pid, signal.SIGSTOP)
        assert "has not answered" in refusal(program.pid)
        os.kill(program.pid, signal.SIGCONT)
        program("work(3)")
        assert program("is_on()") == "False"
        assert program.end() == ""


@pytest.mark.skipif(not BY_DEBUGGER, reason="Python 3.14 and newer have sys.remote_exec")
def test_a_program_that_cannot_be_debugged() -> None:
    with running(POLLS, "-X", "disable-remote-debug") as program:
        assert "is no Python" in refusal(program.pid)
        assert program.end() == ""
    with running(POLLS, PYTHON_DISABLE_REMOTE_DEBUG="1") as program:
        assert "PYTHON_DISABLE_REMOTE_DEBUG" in refusal(program.pid)
        assert program.end() == ""


def test_a_variable_alone_is_no_standby() -> None:
    """A process that was started so and has no handler would die of the signal."""
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, **STANDBY})
    try:
        assert ("is no Python" if BY_DEBUGGER else "is not in standby") in refusal(process.pid)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_program_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins nothing later."""
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 0.05)
    with running(**STANDBY) as program:
        os.kill(program.pid, signal.SIGSTOP)
        assert "has not answered within" in refusal(program.pid)
        os.kill(program.pid, signal.SIGCONT)
        program("work(3)")
        assert program("is_on()") == "False"
        assert program.end() == ""


def test_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "__version__", "0.0.1")
    with running(**STANDBY) as program:
        assert "this command is another one: use that" in refusal(program.pid)
        assert program("is_on()") == "False"
        assert program.end() == ""


def test_a_program_that_cannot_be_recorded() -> None:
    """The reason is the program's own."""
    with running(**STANDBY) as program:
        Path("setup.cfg").write_text("[queryprof]\ncall_path_frames = 99\n")
        assert "call_path_frames" in refusal(program.pid)
        Path("setup.cfg").unlink()
        with attached(program, "--no-report"):
            program("work(1)")
        assert program.end() == ""
    assert by_operation(read_profile("x.qprof"))[SELECT] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_another_user() -> None:
    with running(**STANDBY) as program:
        code = (
            "import os\n"
            "from queryprof.attachment.attaching import attach\n"
            "os.setuid(65534)\n"
            f"attach({program.pid}, '1::/tmp/')"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert f"process {program.pid} is of user 0: run this command as that user" in done.stderr
        assert program("is_on()") == "False"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a namespace of its own")
def test_a_container() -> None:
    with running(**STANDBY) as program:
        done = subprocess.run(
            ["unshare", "--net", QUERYPROF, "attach", str(program.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        if "unshare" in done.stderr:
            pytest.skip("no namespace can be made here")
        assert "is in a container of its own: run this command in it" in done.stderr
        assert program("is_on()") == "False"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_another_users_socket_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listens at the name of a process has no say unless it is its user."""
    with running(**STANDBY) as program:
        code = (
            "import os, socket; os.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1].encode('latin-1')); s.listen()\n"
            "print('listens', flush=True); c, _ = s.accept()\n"
            'c.sendall(b\'{"version": "0.1.0", "runner": "1::/tmp/"}\\n\')\n'
            "print(c.recv(100), flush=True)"
        )
        name = messages.name_of(program.pid).decode("latin-1")
        code = code.replace("sys.argv[1]", repr(name))
        stranger = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == "listens\n"
        assert "another command is about to attach" in refusal(program.pid)
        os.kill(program.pid, messages.SIGNAL)
        assert stranger.communicate(timeout=60)[0] in ("b''\n", "")  # closed, unheard
        assert program("is_on()") == "False"
        assert program.end() == ""


def test_a_stranger_at_the_commands_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process than the one that was meant is not taken for it."""
    with running(**STANDBY) as program:
        name = messages.name_of(program.pid)
        looked = threading.Event()
        before = attaching._looking

        def look(pid: int, process: int) -> AbstractContextManager[None]:
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(name)
                messages.send(stranger, began=True)
            looked.set()
            return before(pid, process)

        monkeypatch.setattr(attaching, "_looking", look)
        attachment = attach(program.pid, Runner(os.getpid(), f"{os.getcwd()}/").variable)
        assert looked.is_set()
        assert program("is_on()") == "True"
        attachment.end()
        assert program("is_on()") == "False"
        program.end()
    for path in regions_of(f"{os.getcwd()}/"):
        os.unlink(path)


def test_many_threads_and_attachments() -> None:
    """No call fails, and each is counted in one trace or none."""
    total = 0
    with running(BUSY, **STANDBY) as program:
        for _ in range(5):
            with attached(program, "--no-report"):
                first = int(program("sum(counts)"))
                while int(program("sum(counts)")) < first + 500:
                    time.sleep(0)
                within = int(program("sum(counts)")) - first
            counts = by_operation(read_profile("x.qprof"))
            found = counts["SELECT ?, ?", "execute"]
            assert found >= within >= 500
            total += found
        assert int(program("finish()")) >= total
        assert program.end() == ""
