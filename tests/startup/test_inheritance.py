"""A recorded command starts with the same inherited state as a bare one."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import QUERYPROF

PROGRAM = """
import json, os, resource, sys
def link(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None  # of the directory that lists them
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
found = {
    "signals": [status[name].strip() for name in ("SigBlk", "SigIgn", "SigCgt")],
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
    "descriptors": sorted((fd, link(fd)) for fd in map(int, os.listdir("/proc/self/fd")) if link(fd)),
    "umask": os.umask(0), "group": os.getpgid(0), "session": os.getsid(0), "nice": os.nice(0),
    "directory": os.getcwd(), "groups": os.getgroups(), "ids": os.getresuid() + os.getresgid(),
    "dumpable": open("/proc/self/oom_score_adj").read(),
    "privileges": status["NoNewPrivs"], "processors": status["Cpus_allowed"],
    "arguments": sys.orig_argv[1:], "flags": str(sys.flags),
}
with open(os.environ["FOUND"], "w") as file:
    json.dump(found, file)
"""

SHELL = (
    "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; ls -l /proc/self/fd | sed 's/.* //' | grep -v"
    " /proc; ulimit -a; umask"
)


def ignore(*numbers: int) -> Callable[[], None]:
    def change() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    return change


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
    os.umask(0o027)


def hand_over() -> None:
    for number in (3, 7, 50):
        os.dup2(os.open("/dev/null", os.O_RDWR), number, inheritable=True)


def close_streams() -> None:
    os.close(0)
    os.close(2)


STARTS: dict[str, Callable[[], None]] = {
    "plain": lambda: None,
    "nohup": ignore(signal.SIGHUP),
    "in the background": ignore(signal.SIGINT, signal.SIGQUIT),
    "all ignored": ignore(
        *(set(signal.valid_signals()) - {9, 19, 32, 33, signal.SIGPIPE, signal.SIGXFSZ})
    ),
    "blocked": (
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM}) and None
    ),
    "limits": limit,
    "descriptors": hand_over,
    "closed streams": close_streams,
    "own session": os.setsid,
}


@pytest.mark.once
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.repeats
def test_a_recorded_command_inherits_what_a_bare_one_does(start: str, tmp_path: Path) -> None:
    found = []
    (tmp_path / "program.py").write_text(PROGRAM)
    for command in ([sys.executable], [QUERYPROF, "run", "--no-report", "-o", "x.qprof"]):
        name = tmp_path / "found.json"
        done = subprocess.run(
            [*command, "program.py"],
            cwd=tmp_path,
            preexec_fn=STARTS[start],
            check=False,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "FOUND": str(name)},
            restore_signals=True,
            process_group=0 if start != "own session" else None,
        )
        assert done.returncode == 0
        found.append(json.loads(name.read_text()))
        name.unlink()

    bare, recorded = found
    for one in found:  # those of this test: its own group and session
        one["group"] = one["session"] = None
    assert recorded == bare


@pytest.mark.once
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.repeats
def test_a_command_of_another_language_does_so_too(start: str, tmp_path: Path) -> None:
    if start == "closed streams":
        pytest.skip("it has no output to compare")
    outputs = []
    for command in ([], [QUERYPROF, "run", "--no-report", "-o", "x.qprof", "--"]):
        done = subprocess.run(
            [*command, "sh", "-c", SHELL],
            cwd=tmp_path,
            preexec_fn=STARTS[start],
            text=True,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        outputs.append([line for line in done.stdout.splitlines() if "pipe:" not in line])
    bare, recorded = outputs
    assert recorded == bare


@pytest.mark.parametrize("start", ["nohup", "in the background"])
@pytest.mark.repeats
def test_an_ignored_signal_ends_nothing(start: str, tmp_path: Path) -> None:
    """A hangup or an interrupt of the terminal does not end a program that was started to outlive
    it.
    """
    number = signal.SIGHUP if start == "nohup" else signal.SIGINT
    code = "import sys; print('ready', flush=True); sys.stdin.readline(); print('lived')"
    with subprocess.Popen(
        [QUERYPROF, "run", "--no-report", "-o", "x.qprof", "-c", code],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=STARTS[start],
        text=True,
        process_group=0,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, number)
        output, _ = process.communicate("go on\n", timeout=60)
    assert (output, process.returncode) == ("lived\n", 0)


def test_a_signal_that_the_program_handles_again_reaches_it(tmp_path: Path) -> None:
    """Under nohup, a server may install its own handler for a hangup, to reload its settings."""
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGHUP, lambda *_: sys.exit('read again'))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)  # a pause() would miss a signal before it\n"
    )
    with subprocess.Popen(
        [QUERYPROF, "run", "--no-report", "-o", "x.qprof", "-c", code],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=STARTS["nohup"],
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=60)
    assert (errors, process.returncode) == ("read again\n", 1)
