"""Programs in unexpected states: with their own titles, handlers and descriptors, or whose command
was killed together with its guardian.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from recorder.running_programs import ATTACH, OBEYS, STANDBY, Command, attached, running

from conftest import by_operation
from queryprof.collect.reader import read_profile
from queryprof.recorder import answer, attaching, fork_guard, guardian, messages
from queryprof.recorder.attaching import AttachedProcess, attach
from queryprof.recorder.autoload import RunnerFacts
from queryprof.recorder.standby import SIGNAL
from queryprof.region.region_files import regions_of_trace

SELECT = ("SELECT ?", "execute")
BY_DEBUGGER = hasattr(sys, "remote_exec")

TITLED = OBEYS.replace(
    "print(os.getpid()",
    """
import ctypes
def set_title(title):
    fields = open("/proc/self/stat").read().rpartition(")")[2].split()
    first, last = int(fields[47]), int(fields[48])
    ctypes.memset(first, 0, last - first)
    ctypes.memmove(first, title, min(len(title), last - first))
print(os.getpid()""",
)
"""Its title may overwrite its environment (proc_pid_stat(5)), as setproctitle does."""


@pytest.fixture(autouse=True)
def _on_a_machine_of_any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 600.0)
    monkeypatch.setattr(attaching, "ENDS_MS", 600_000.0)


def begun(pid: int) -> AttachedProcess:
    return attach(pid, RunnerFacts(os.getpid(), f"{os.getcwd()}/").variable)


def forget() -> None:
    for path in regions_of_trace(f"{os.getcwd()}/"):
        os.unlink(path)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
@pytest.mark.repeats
def test_a_title_where_the_environment_was(when: str) -> None:
    with running(TITLED, **STANDBY) as program:
        if when == "before":
            program("set_title(b'gunicorn: worker')")
        with attached(program, "--no-report"):
            program("work(3)")
            if when == "meanwhile":
                program("set_title(b'gunicorn: worker')")
        assert program("is_on()") == "False"
        assert program.end() == ""
    assert by_operation(read_profile("x.qprof"))[SELECT] == 3


@pytest.mark.skipif(BY_DEBUGGER, reason="Python 3.14 and newer have sys.remote_exec")
def test_a_title_is_no_standby() -> None:
    with running(TITLED) as program:
        program("set_title(b'gunicorn: worker')")
        command = Command(program.pid)
        assert f"process {program.pid} is not in standby" in command.message
        command.result(2)
        assert program.end() == ""


@pytest.mark.skipif(BY_DEBUGGER, reason="Python 3.14 and newer have another way to it")
@pytest.mark.slow
def test_a_handler_that_the_program_takes_away() -> None:
    with running("import signal\n" + OBEYS, **STANDBY) as program:
        command = Command(program.pid, "-o", "x.qprof", "--no-report")
        program("work(1)")
        program(f"signal.signal({SIGNAL}, signal.SIG_DFL)")
        message = command.end()
        assert "its recording ends with the process" in message
        program("work(2)")
        assert program("is_on()") == "True"


def test_the_signal_harms_no_program_without_a_handler() -> None:
    """The program has just become another program by exec."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.send_signal(SIGNAL)
        assert process.communicate(b"alive", timeout=60)[0] == b"alive"
    assert process.returncode == 0


def test_a_command_that_is_killed_with_what_would_end_its_recording() -> None:
    """The next command ends the old recording, and begins its own."""
    with running(**STANDBY) as program:
        command = subprocess.Popen(
            [*ATTACH, str(program.pid), "-o", "x.qprof"],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert command.stderr is not None
        assert "is recorded" in command.stderr.readline()
        program("work(2)")
        for child in Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        command.kill()
        command.communicate()
        assert program("is_on()") == "True"
        with attached(program, "--no-report", output="y.qprof"):
            program("work(5)")
        assert program("is_on()") == "False"
        assert program.end() == ""
    assert by_operation(read_profile("y.qprof"))[SELECT] == 5
    assert by_operation(read_profile("x.qprof"))[SELECT] == 2


def test_a_living_commands_recording_is_not_taken() -> None:
    with running(**STANDBY) as program, attached(program, "--no-report") as command:
        program("work(2)")
        other = Command(program.pid, "-o", "y.qprof")
        assert "another command is attached to it" in other.message
        other.result(2)
        command.end()
    assert by_operation(read_profile("x.qprof"))[SELECT] == 2


FULL = """
import resource
before = resource.getrlimit(resource.RLIMIT_NOFILE)
def fill():
    while len(os.listdir("/proc/self/task")) > 1:  # what has begun the recording has gone
        pass
    free = os.dup(0)  # there may be used ones above it
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
def empty():
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
"""


def test_a_program_without_a_descriptor_is_ended_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is sent again, and nothing is printed."""
    monkeypatch.setattr(attaching, "AGAIN_S", 0.01)
    sent, send = threading.Event(), signal.pidfd_send_signal

    def send_and_note(process: int, number: int) -> None:
        send(process, number)
        sent.set()

    text = OBEYS.replace("print(os.getpid()", FULL + "print(os.getpid()")
    with running(text, **STANDBY) as program:
        attachment = begun(program.pid)
        program("fill()")
        monkeypatch.setattr(signal, "pidfd_send_signal", send_and_note)
        message: list[str] = []
        ending = threading.Thread(target=lambda: message.append(attachment.end(600.0)))
        ending.start()
        sent.wait()  # the first signal comes while the program has no descriptor
        for _ in range(5):
            program("work(1)")
        assert program("is_on()") == "True"
        program("empty()")
        while ending.is_alive():  # Python 3.14 answers once its main thread runs Python
            program("work(1)")
        assert message == [""]
        assert program("is_on()") == "False"
        assert program.end() == ""
    forget()


def test_a_program_without_a_descriptor_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first attachment it has no free descriptor to import a file."""
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 0.05)
    text = OBEYS.replace("print(os.getpid()", FULL + "print(os.getpid()")
    with running(text, **STANDBY) as program:
        program("fill()")
        with pytest.raises(attaching.AttachError, match="no free file descriptor"):
            begun(program.pid)
        program("work(1)")
        program("empty()")
        assert program.end() == ""


OWN_HANDLER = "import signal\nseen = []\n" + OBEYS


def test_a_handler_of_the_programs_own_is_called_twice_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 0.05)
    monkeypatch.setattr(attaching, "AGAIN_S", 0.001)
    with running(OWN_HANDLER, **STANDBY) as program:
        program(f"signal.signal({SIGNAL}, lambda *_: seen.append(1))")
        with pytest.raises(attaching.AttachError, match="or handles or blocks SIGURG itself"):
            begun(program.pid)
        assert program("seen") in ("[1]", "[1, 1]")
        assert program.end() == ""


def test_a_signal_just_before_a_system_call_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter would handle the first one only after the call."""
    monkeypatch.setattr(attaching, "AGAIN_S", 0.001)
    sent: list[int] = []

    def lose_the_first(process: int, number: int) -> None:
        if sent:
            send(process, number)
        sent.append(number)

    send = signal.pidfd_send_signal
    monkeypatch.setattr(signal, "pidfd_send_signal", lose_the_first)
    with running(**STANDBY) as program:
        attachment = begun(program.pid)
        assert program("is_on()") == "True"
        assert attachment.end(600.0) == ""
        assert program.end() == ""
    forget()


def test_a_program_that_ends_before_it_answers() -> None:
    text = OBEYS.replace(
        "print(os.getpid()",
        f"""
import signal, socket, threading
def leave():
    s = socket.socket(socket.AF_UNIX)
    s.connect(b"\\0queryprof-attach-%d" % os.getpid())
    s.recv(4096)
    os._exit(0)
signal.signal({SIGNAL}, lambda *_: threading.Thread(target=leave).start())
print(os.getpid()""",
    )
    with running(text, **STANDBY) as program:
        with pytest.raises(attaching.AttachError, match=f"process {program.pid} has ended"):
            begun(program.pid)
        program.process.communicate(timeout=60)


def test_a_killed_program_has_ended_its_recording() -> None:
    """Nothing is left to say about it."""
    with running(**STANDBY) as program:
        attachment = begun(program.pid)
        program.process.kill()
        program.process.communicate(timeout=60)
        assert attachment.end(600.0) == ""
    forget()


@pytest.mark.parametrize("is_reaped", [False, True])
def test_a_command_that_is_no_more(is_reaped: bool) -> None:
    """It may not have been waited for by its parent yet."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        if is_reaped:
            process.wait()
        assert not answer._is_runner_running(f"{process.pid}::/tmp/")
    assert answer._is_runner_running(f"{os.getpid()}::/tmp/")


@pytest.mark.once
@pytest.mark.slow
def test_a_guardian_ends_all_that_it_can() -> None:
    """This holds even if the first of them is stopped. The name of the socket is free meanwhile."""
    with running(**STANDBY) as one, running(**STANDBY) as other:
        command = Command(one.pid, other.pid, "-o", "x.qprof", "--no-report")
        os.kill(one.pid, signal.SIGSTOP)
        command.process.kill()
        command.process.communicate()
        while other("is_on()") == "True":
            pass
        os.kill(one.pid, signal.SIGCONT)
        while one("is_on()") == "True":
            pass
        assert one.end() == ""
        assert other.end() == ""


@pytest.mark.once
def test_a_guardian_leaves_a_program_that_looks_for_no_command() -> None:
    """For example, the program became another one by exec: it has nothing left to end."""
    with running(PYTHON_DISABLE_REMOTE_DEBUG="1") as program:
        process = attaching.open_process(program.pid)
        assert guardian._end_recording(program.pid, process, "1::/tmp/")
        os.close(process)
        assert program.end() == ""


@pytest.mark.parametrize("reused", [False, True])
def test_a_descriptor_that_the_program_closes(
    reused: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A daemon closes all its descriptors. The next file with the same number stays open."""
    ours, theirs = socket.socketpair()
    messages.send_message(theirs, end="")
    number = ours.fileno()
    monkeypatch.setattr(answer, "_connect_to_command", lambda: ours)

    def close_all(_connection: object, **_message: object) -> None:
        if reused:
            with Path("own").open("w") as own:
                os.dup2(own.fileno(), number)
        else:
            os.close(number)

    monkeypatch.setattr(answer, "send_message", close_all)
    answer.answer_command(lambda _runner, _owner: pytest.fail("it began"))
    if reused:
        assert os.write(number, b"mine") == 4
        os.close(number)
        assert Path("own").read_text() == "mine"
    theirs.close()
    assert capfd.readouterr().err == ""


def test_a_fork_waits_for_a_thread_that_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_guard, "THREAD_ENDS", 10**9)
    own = fork_guard.ForkGuard()
    steps: list[str] = []
    waits = threading.Event()

    def come() -> None:
        waits.wait()
        with own:
            steps.append("thread")

    own.expect_thread()
    thread = threading.Thread(target=come)
    thread.start()
    monkeypatch.setattr("time.sleep", lambda _: waits.set())
    own._wait_for_threads()
    steps.append("fork")
    assert steps == ["thread", "fork"]
    assert thread.native_id is not None
    assert not os.path.exists(f"/proc/self/task/{thread.native_id}")
    own._after_in_parent()
    own._wait_for_threads()  # no command is expected any more
    own._after_in_parent()


REFUSES = OBEYS.replace(
    "print(os.getpid()",
    """
def hook(event, args):
    if event == "_thread.start_new_thread":
        raise PermissionError(event)
sys.addaudithook(hook)
def is_refused():
    import _thread
    try:
        _thread.start_new_thread(int, ())
    except PermissionError:
        return True
    return False
print(os.getpid()""",
)


def test_a_program_that_allows_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 0.05)
    with running(REFUSES, **STANDBY) as program:
        if program("is_refused()") == "False":
            pytest.skip("this Python audits no threads")
        with pytest.raises(attaching.AttachError, match="has not answered"):
            begun(program.pid)
        program("work(1)")
        assert program("forks()") == "20"
        assert program.end() == ""
