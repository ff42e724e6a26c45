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
from queryprof.cli.command import FORWARDED

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
signal.signal(signal.SIGALRM, lambda *_: print("end", flush=True) or sys.exit(7))
print("ready", os.getpid(), flush=True)
while True:
    signal.pause()
"""


def started(tmp_path: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [QUERYPROF, "run", "--no-report", "-o", "/dev/null", "program.py", *arguments]
    return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


def line_of(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout
    return process.stdout.readline().split()


@pytest.mark.parametrize("number", FORWARDED, ids=lambda number: number.name)
def test_a_signal_by_kill_arrives_once(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, str(int(number))) as process:
        _, child = line_of(process)
        for count in (1, 2):
            os.kill(process.pid, number)
            assert line_of(process) == ["got", str(int(number)), str(count)]
        os.kill(int(child), signal.SIGALRM)
        assert line_of(process) == ["end"]
        assert process.wait() == 7


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
        os.kill(int(child), signal.SIGALRM)
        assert line_of(process) == ["end"]
        assert process.wait() == 7
    os.close(keyboard)
    os.close(terminal)
