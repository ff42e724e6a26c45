"""`queryprof attach`: which processes it refuses, and which commands a program accepts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from recorder.running_programs import OBEYS, POLLS, STANDBY, attached, running

from conftest import QUERYPROF, Run, by_operation
from queryprof.collect.reader import read_profile
from queryprof.collect.target import TraceTarget
from queryprof.recorder import attaching, messages
from queryprof.recorder.attaching import AttachError, attach
from queryprof.recorder.autoload import RunnerFacts
from queryprof.recorder.standby import SIGNAL
from queryprof.region.region_files import regions_of_trace
from queryprof.version import __version__

pytestmark = pytest.mark.once

SELECT = ("SELECT ?", "execute")
BY_DEBUGGER = hasattr(sys, "remote_exec")


@pytest.fixture(autouse=True)
def _waits_on_a_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 600.0)


def refusal(pid: int) -> str:
    with pytest.raises(AttachError) as error:
        attach(pid, RunnerFacts(os.getpid(), f"{os.getcwd()}/").variable)
    return str(error.value)


def test_what_is_not_there_or_not_in_standby(queryprof: Run) -> None:
    with running() as program:
        if not BY_DEBUGGER:
            result = queryprof("attach", program.pid)
            assert result.returncode == 2
            assert result.stderr.startswith(f"queryprof: process {program.pid} is not in standby")
            assert len(result.stderr.splitlines()) == 1
        assert program.end() == ""
    assert refusal(program.pid) == f"no running process {program.pid}"
    assert refusal(2**40) == f"no running process {2**40}"
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
        assert "cannot attach to process" in refusal(program.pid)
        assert program.end() == ""
    with running(POLLS, PYTHON_DISABLE_REMOTE_DEBUG="1") as program:
        assert "PYTHON_DISABLE_REMOTE_DEBUG" in refusal(program.pid)
        assert program.end() == ""


def test_a_variable_alone_is_no_standby() -> None:
    """A process with this variable but without a handler would die of the signal."""
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, **STANDBY})
    try:
        assert ("cannot attach to process" if BY_DEBUGGER else "is not in standby") in refusal(
            process.pid
        )
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_program_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts no recording later."""
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
    with running(POLLS, **STANDBY) as program:  # a debugger waits until the main thread runs
        assert "use the same version of this command" in refusal(program.pid)
        assert program("is_on()") == "False"
        assert program.end() == ""


def test_a_program_that_cannot_be_recorded() -> None:
    """The program gives the reason."""
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
            "from queryprof.recorder.attaching import attach\n"
            "os.setuid(65534)\n"
            f"attach({program.pid}, '1::/tmp/')"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert (
            f"process {program.pid} belongs to user 0: run this command as that user" in done.stderr
        )
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
        assert "runs in another container: run this command there" in done.stderr
        assert program("is_on()") == "False"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_another_users_socket_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener at a process's name is ignored unless it belongs to the process's user."""
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 0.05)
    with running(**STANDBY) as program:
        code = (
            "import os, socket; os.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1].encode('latin-1')); s.listen()\n"
            "print('listens', flush=True); command, _ = s.accept(); c, _ = s.accept()\n"
            'c.sendall(b\'{"version": "0.1.0", "runner": "1::/tmp/"}\\n\')\n'
            "print(c.recv(100), flush=True)"
        )
        name = messages.socket_name(program.pid).decode("latin-1")
        code = code.replace("sys.argv[1]", repr(name))
        stranger = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == "listens\n"
        assert refusal(program.pid) == (
            f"process {stranger.pid} of user 65534 already waits for an answer of process"
            f" {program.pid}: try again, or end process {stranger.pid}"
        )
        os.kill(program.pid, SIGNAL)
        heard, _ = stranger.communicate(timeout=60)
        assert heard in ("b''\n", "")  # closed; if it had sent data, that is an error there
        assert program("is_on()") == "False"
        assert program.end() == ""


def test_a_waiting_command_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attaching, "ANSWER_TIMEOUT_S", 0.05)
    with running(**STANDBY) as program, socket.socket(socket.AF_UNIX) as other:
        other.bind(messages.socket_name(program.pid))
        assert (
            refusal(program.pid) == f"another command is about to attach to process {program.pid}"
        )
        other.listen()
        assert refusal(program.pid) == (
            f"process {os.getpid()} already waits for an answer of process {program.pid}: try again,"
            f" or end process {os.getpid()}"
        )
        assert program.end() == ""


def test_a_command_waits_for_another_ones_answer() -> None:
    """It waits to begin and to end. Otherwise a recording would stay on because another command
    wants one.
    """
    with running(**STANDBY) as program:
        other = socket.socket(socket.AF_UNIX)
        other.bind(messages.socket_name(program.pid))
        before, tried = attaching._poll_for, threading.Event()

        class Waiting:
            """Notes that the name was not to be had, and has the other command leave it."""

            def __init__(self, *files: int | None) -> None:
                self._waiting = before(*files)

            def poll(self, timeout_ms: float) -> object:
                if timeout_ms == attaching.NAME_WAIT_MS:
                    tried.set()
                    other.close()
                return self._waiting.poll(timeout_ms)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(attaching, "_poll_for", Waiting)
            attachment = attach(program.pid, RunnerFacts(os.getpid(), f"{os.getcwd()}/").variable)
            assert tried.is_set()
            assert program("is_on()") == "True"
            tried.clear()
            other = socket.socket(socket.AF_UNIX)
            other.bind(messages.socket_name(program.pid))
            assert attachment.end() == ""
            assert tried.is_set()
        assert program("is_on()") == "False"
        program.end()
    for path in regions_of_trace(f"{os.getcwd()}/"):
        os.unlink(path)


def test_a_stranger_at_the_commands_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with another id than the expected one is rejected."""
    with running(**STANDBY) as program:
        name = messages.socket_name(program.pid)
        looked = threading.Event()
        before = attaching._process_connecting

        def look(pid: int, process: int) -> AbstractContextManager[None]:
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(name)
                messages.send_message(stranger, began=True)
            looked.set()
            return before(pid, process)

        monkeypatch.setattr(attaching, "_process_connecting", look)
        attachment = attach(program.pid, RunnerFacts(os.getpid(), f"{os.getcwd()}/").variable)
        assert looked.is_set()
        assert program("is_on()") == "True"
        attachment.end()
        assert program("is_on()") == "False"
        program.end()
    for path in regions_of_trace(f"{os.getcwd()}/"):
        os.unlink(path)


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ('b"[" * 60000 + b"\\n"', "its answer is invalid"),
        ('b"{}\\n"', "its answer is invalid"),
        ('b"[1]\\n"', "its answer is invalid"),
        ('b"\\xff\\n"', "its answer is invalid"),
        ('b"x" * 70000', "its answer is invalid"),
        ("b'{\"refused\": \"' + b'no\\\\u001b[31m' * 9999 + b'\"}\\n'", "its answer is invalid"),
    ],
)
@pytest.mark.repeats
def test_a_hostile_program(queryprof: Run, answer: str, output: str) -> None:
    """Its answer is cut to one line."""
    text = OBEYS.replace(
        "print(os.getpid()",
        f"""
import signal, socket, threading
def lie(*_):
    s = socket.socket(socket.AF_UNIX)
    s.connect(b"\\0queryprof-attach-%d" % os.getpid())
    s.recv(4096)
    s.sendall({answer})
signal.signal({SIGNAL}, lambda *_: threading.Thread(target=lie).start())
print(os.getpid()""",
    )
    with running(text, **STANDBY) as program:
        result = queryprof("attach", program.pid)
        program.end()
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert len(result.stderr) < 1000
    assert "\x1b" not in result.stderr
    assert output in result.stderr
    assert not list(Path().glob("*.qprof*"))


def test_a_message_has_one_time_limit_however_often_a_byte_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock advances 4 s per byte. A limit for each wait would never be reached."""
    now_s = 0.0
    monkeypatch.setattr(messages, "monotonic", lambda: now_s)

    class Dripping:
        def __init__(self) -> None:
            self.limits_s: list[float] = []

        def settimeout(self, limit_s: float) -> None:
            self.limits_s.append(limit_s)

        def recv(self, _bytes: int) -> bytes:
            nonlocal now_s
            now_s += 4
            return b"{"

    dripping = Dripping()
    with pytest.raises(TimeoutError, match=r"no complete message within 10 s"):
        messages.receive_message(dripping, 10)
    assert dripping.limits_s == [10, 6, 2]


def test_a_silent_command_has_the_same_limit() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError, match=r"no complete message within 0\.01 s"):
        messages.receive_message(ours, 0.01)


def test_a_command_that_sends_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """After the time limit nothing has begun, and no error is printed."""
    from queryprof.recorder import answer

    monkeypatch.setattr(answer, "REQUEST_TIMEOUT_S", 0.01)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(messages.socket_name(os.getpid()))
        silent.listen()
        answer.answer_command(lambda _runner, _owner: pytest.fail("it began"))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("leaves", [False, True])
def test_a_command_that_leaves_before_the_answer(leaves: bool) -> None:
    """Its recording ends, because nobody else would end it."""
    from queryprof.recorder import answer
    from queryprof.recorder.session import session

    request = {"version": __version__, "runner": f"{os.getpid()}::/nowhere/"}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(messages.socket_name(os.getpid()))
        listening.listen()

        def command() -> None:
            connection, _ = listening.accept()
            with connection:
                messages.send_message(connection, **request)
                if not leaves:
                    assert messages.receive_message(connection, 60) == {"began": True}

        def begin(_runner: str, owner: object) -> bool:
            if leaves:
                thread.join()
            began.append(owner)
            return session.start(target=lambda: TraceTarget("x.qprof", "", ""), owner=owner)

        began: list[object] = []
        thread = threading.Thread(target=command)
        thread.start()
        answer.answer_command(begin)
        thread.join()
    assert began == [answer.attachment]
    assert bool(answer.attachment.runner) is session.is_on is not leaves
    answer.attachment.answer({"end": request["runner"]}, begin)
    assert not session.is_on
