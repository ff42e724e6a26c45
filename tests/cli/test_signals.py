"""A signal to `queryprof run` reaches the command once, whoever sends it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import QUERYPROF
from queryprof.cli.signals import FORWARDED, SignalForwarding

END, SYNC = signal.SIGRTMAX, signal.SIGRTMAX - 1
"""SYNC is delivered after the other waiting signals: smaller numbers come first."""
PYTHON = Path(QUERYPROF).with_name("python")

PROGRAM = """
import os, signal, sys
if "own group" in sys.argv:
    os.setpgrp()
counts = {}
def count(number, _):
    counts[number] = counts.get(number, 0) + 1
    print("got", number, counts[number], flush=True)
for number in map(int, sys.argv[1].split()):
    signal.signal(number, count)
signal.signal(signal.SIGRTMAX, lambda *_: print("end", flush=True) or sys.exit(7))
came, comes = os.pipe()
os.set_blocking(comes, False)
signal.set_wakeup_fd(comes)
print("ready", os.getpid(), flush=True)
while True:
    os.read(came, 1)  # a signal just before pause() would wait for the next one
"""


def started(tmp_path: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [QUERYPROF, "run", "--no-report", "-o", "/dev/null", "program.py", *arguments]
    return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


def line_of(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout
    return process.stdout.readline().split()


def test_each_signal_arrives_once(tmp_path: Path) -> None:
    """It is sent with kill(2) to the command that was started, or to its whole group."""
    numbers = sorted(FORWARDED - {SYNC, END})
    counted = " ".join(str(int(number)) for number in (*numbers, SYNC))
    with started(tmp_path, counted, process_group=0) as process:
        line_of(process)
        for count, send in enumerate((os.kill, os.killpg, os.kill, os.killpg), 1):
            for number in numbers:
                send(process.pid, number)
                assert line_of(process) == ["got", str(int(number)), str(count)]
                if send is os.killpg:  # the command may receive it long before this process does
                    os.kill(process.pid, SYNC)
                    assert line_of(process)[1] == str(int(SYNC))
        os.kill(process.pid, END)
        assert line_of(process) == ["end"]
        assert process.wait() == 7


@pytest.mark.once
@pytest.mark.parametrize("send", [os.kill, os.killpg])
@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
@pytest.mark.repeats
def test_it_stops_and_goes_on_with_the_command(
    tmp_path: Path, send: Callable[[int, int], None], number: signal.Signals
) -> None:
    """This is how a shell's job reacts to Ctrl-Z and fg."""
    with started(tmp_path, str(int(signal.SIGUSR1)), process_group=0) as process:
        _, child = line_of(process)
        for count in (1, 2):
            send(process.pid, number)
            assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
            assert _state(int(child)) == "T"
            send(process.pid, signal.SIGCONT)
            os.kill(process.pid, signal.SIGUSR1)
            assert line_of(process) == ["got", str(int(signal.SIGUSR1)), str(count)]
        os.kill(int(child), END)
        assert line_of(process) == ["end"]
        assert process.wait() == 7


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
@pytest.mark.repeats
def test_it_goes_on_with_a_command_that_others_stop(tmp_path: Path, number: signal.Signals) -> None:
    """They continue the command, and know no other process. A shell that waits sees both."""
    with started(tmp_path, str(int(signal.SIGUSR1)), process_group=0) as process:
        _, child = line_of(process)
        for count in (1, 2):
            os.kill(int(child), number)
            status = os.waitpid(process.pid, os.WUNTRACED)[1]
            assert os.WIFSTOPPED(status)
            assert os.WSTOPSIG(status) == number
            os.kill(int(child), signal.SIGCONT)
            assert os.WIFCONTINUED(os.waitpid(process.pid, os.WCONTINUED)[1])
            os.kill(process.pid, signal.SIGUSR1)
            assert line_of(process) == ["got", str(int(signal.SIGUSR1)), str(count)]
        os.kill(int(child), END)
        assert line_of(process) == ["end"]
        assert process.wait() == 7


def test_it_ends_with_a_command_that_is_killed_while_stopped(tmp_path: Path) -> None:
    with started(tmp_path, str(int(signal.SIGUSR1)), process_group=0) as process:
        _, child = line_of(process)
        os.kill(int(child), signal.SIGSTOP)
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        os.kill(int(child), signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_command_s_end_leaves_its_status(number: signal.Signals) -> None:
    """The trace is being written then."""
    with SignalForwarding() as signals:
        assert signals.wait(subprocess.Popen(["true"])) == 0
        os.kill(os.getpid(), number)


def test_an_interrupt_before_the_command_ends_a_shell_s_loop(tmp_path: Path) -> None:
    """This process dies of the signal instead of exiting with a status."""
    text = (
        "import os, signal, sys\n"
        "import queryprof.cli.command as command, queryprof.cli.main as main\n"
        "command.python_command = lambda _: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['queryprof', 'run', 'true']\n"
        "main.main()"
    )
    done = subprocess.run(
        [PYTHON, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "\n")


EARLY = """
import os, signal, subprocess
from queryprof.cli.signals import SignalForwarding
with SignalForwarding() as signals:
    os.kill(os.getpid(), {number})
    print(signals.wait(subprocess.Popen(["sleep", "60"])))
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
def test_a_signal_before_the_command_is_the_commands(number: signal.Signals) -> None:
    text = EARLY.format(number=int(number))
    done = subprocess.run([PYTHON, "-c", text], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"-{int(number)}\n", "")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """The signal handlers, this thread's mask and all processes are as before."""
    before = {number: signal.getsignal(number) for number in FORWARDED}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    known = children()  # of other tests
    with SignalForwarding() as signals:
        assert signals.wait(subprocess.Popen(["true"])) == 0
    assert {number: signal.getsignal(number) for number in FORWARDED} == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    assert children() <= known


def test_the_end_is_seen_if_another_thread_takes_the_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel gives SIGCHLD to any thread that does not block it. Here it comes too early."""
    with SignalForwarding() as signals:
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        poll, polls = child.poll, [None]
        monkeypatch.setattr(child, "poll", lambda: polls.pop() if polls else poll())
        assert signals.wait(child) == 0
    assert not polls


def children() -> set[int]:
    """Return the ids of this process's children, including zombies."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = stat.read_text().rpartition(")")[2].split()[1]
            found |= {int(stat.parent.name)} if int(parent) == os.getpid() else set()
    return found


def controlled_by(terminal: int) -> Callable[[], None]:
    def take() -> None:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    return take


@pytest.mark.parametrize("group", [[], ["own group"]], ids=["our group", "its own group"])
@pytest.mark.parametrize(("key", "number"), [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
@pytest.mark.repeats
def test_a_key_arrives_once(
    tmp_path: Path, key: bytes, number: signal.Signals, group: list[str]
) -> None:
    """The terminal sends it to all processes of the foreground group."""
    keyboard, terminal = pty.openpty()
    options = {"stdin": terminal, "preexec_fn": controlled_by(terminal)}
    later = signal.SIGUSR1  # is forwarded after earlier signals
    with started(tmp_path, f"{int(number)} {int(later)}", *group, **options) as process:
        _, child = line_of(process)
        os.write(keyboard, key)
        assert line_of(process) == ["got", str(int(number)), "1"]
        os.kill(process.pid, later)
        assert line_of(process) == ["got", str(int(later)), "1"]
        os.kill(int(child), END)
        assert line_of(process) == ["end"]
        assert process.wait() == 7
    os.close(keyboard)
    os.close(terminal)


LATE = """
import os, signal, subprocess
from queryprof.cli.signals import SignalForwarding
signal.signal(signal.SIGWINCH, lambda *_: print("late"))
with SignalForwarding() as signals:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
    os.kill(os.getpid(), signal.SIGWINCH)  # it is pending when the command has ended
    print(signals.wait(child))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
"""


def test_a_signal_that_comes_with_the_end_is_dropped() -> None:
    """It was for the command, which has ended."""
    done = subprocess.run([PYTHON, "-c", LATE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


UNWITNESSED = """
import os, signal, subprocess, sys
from queryprof.cli.signals import SignalForwarding
command = (
    "import os, signal, sys\\n"
    "waited = {signal.SIGPIPE, signal.SIGTERM}\\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, *waited})\\n"
    "os.kill(os.getppid(), signal.SIGUSR1)\\n"
    "print(int(signal.sigwait({signal.SIGUSR1})))\\n"
    "os.kill(os.getppid(), signal.SIGTERM)\\n"
    "print(int(signal.sigwait(waited)))\\n"
    "sys.exit(3)\\n"
)
with SignalForwarding() as signals:
    os.kill(signals._witness.pid, signal.SIGKILL)
    os.waitid(os.P_PID, signals._witness.pid, os.WEXITED | os.WNOWAIT)
    child = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, text=True)
    status = signals.wait(child)
print(status, child.stdout.read().split() == [str(int(signal.SIGUSR1)), str(int(signal.SIGTERM))])
"""


def test_a_witness_that_was_killed_changes_nothing_of_the_command() -> None:
    """A write to it then raises a signal in this process, not in the command."""
    done = subprocess.run(
        [PYTHON, "-c", UNWITNESSED], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("3 True\n", "")
