"""A signal to `queryprof run` is one to the command: once, whoever sends it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import QUERYPROF
from queryprof.cli.signals import FORWARDED, Forwarding

END = signal.SIGRTMAX
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
    """By kill(2) to the command that was started, or to its whole group."""
    numbers = sorted(FORWARDED - {END})
    with started(
        tmp_path, " ".join(str(int(number)) for number in numbers), process_group=0
    ) as process:
        line_of(process)
        for count, send in enumerate((os.kill, os.killpg, os.kill, os.killpg), 1):
            for number in numbers:
                send(process.pid, number)
                assert line_of(process) == ["got", str(int(number)), str(count)]
        os.kill(process.pid, END)
        assert line_of(process) == ["end"]
        assert process.wait() == 7


@pytest.mark.parametrize("send", [os.kill, os.killpg])
@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
def test_it_stops_and_goes_on_with_the_command(
    tmp_path: Path, send: Callable[[int, int], None], number: signal.Signals
) -> None:
    """As a shell's job does at Ctrl-Z and fg."""
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


def test_a_command_stopped_by_others_stops_nobody_else(tmp_path: Path) -> None:
    """They let it go on themselves, and know of no other process."""
    with started(tmp_path, str(int(signal.SIGUSR1))) as process:
        _, child = line_of(process)
        os.kill(int(child), signal.SIGSTOP)
        os.kill(process.pid, signal.SIGUSR1)
        os.kill(int(child), signal.SIGCONT)
        assert line_of(process) == ["got", str(int(signal.SIGUSR1)), "1"]
        os.kill(int(child), END)
        assert line_of(process) == ["end"]
        assert process.wait() == 7


EARLY = """
import os, signal, subprocess
from queryprof.cli.signals import Forwarding
with Forwarding() as signals:
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
    """The signals' handlers, this thread's mask and all processes are as before."""
    before = {number: signal.getsignal(number) for number in FORWARDED}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with Forwarding() as signals:
        assert signals.wait(subprocess.Popen(["true"])) == 0
    assert {number: signal.getsignal(number) for number in FORWARDED} == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def controlled_by(terminal: int) -> Callable[[], None]:
    def take() -> None:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    return take


@pytest.mark.parametrize("group", [[], ["own group"]], ids=["our group", "its own group"])
@pytest.mark.parametrize(("key", "number"), [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
def test_a_key_arrives_once(
    tmp_path: Path, key: bytes, number: signal.Signals, group: list[str]
) -> None:
    """The terminal sends it to all processes of the group in its foreground."""
    keyboard, terminal = pty.openpty()
    options = {"stdin": terminal, "preexec_fn": controlled_by(terminal)}
    later = signal.SIGUSR1  # is sent on after what came before it
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
