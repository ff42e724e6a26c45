"""Programs that fork, close descriptors or are stopped while a command attaches to them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from recorder.running_programs import ATTACH, OBEYS, STANDBY, Command, attached, running

from conftest import QUERYPROF, by_operation
from queryprof.collect.reader import read_profile

SELECT = ("SELECT ?", "execute")

IMPORTS = OBEYS.replace(
    "print(os.getpid()",
    """
import time
def forks_with_imports(times):
    found = set()
    for _ in range(times):
        child = os.fork()
        if not child:
            import json, select, struct, socket, hashlib
            work(1)
            os._exit(20 + is_on())
        found.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return found
print(os.getpid()""",
)
YIELDS = IMPORTS.replace(
    "print(os.getpid()",
    "os.register_at_fork(before=lambda: time.sleep(0.001), after_in_parent=lambda: time.sleep(0.001))\nprint(os.getpid()",
)
"""The program has its own hooks, in which other threads run."""


@pytest.mark.parametrize("text", [IMPORTS, pytest.param(YIELDS, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_forks_while_a_recording_begins_and_ends(text: str) -> None:
    """No child waits for a lock of a thread that it does not have, and no child is recorded."""
    with running(text, "-W", "error::DeprecationWarning", **STANDBY) as program:
        attaching = [
            subprocess.Popen(
                [*ATTACH, str(program.pid), "--for", "50ms", "-o", f"{n}.qprof"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for n in range(3)
        ]
        assert program("forks_with_imports(150)") == "{20}"
        message = [one.communicate(timeout=100)[1] for one in attaching]
        assert 0 in {one.returncode for one in attaching}, message
        assert program("is_on()") == "False"
        assert program("forks_with_imports(5)") == "{20}"
        assert program.end() == ""


def test_descriptors_that_are_closed_meanwhile() -> None:
    with running(**STANDBY) as program:
        with attached(program, "--no-report"):
            program("work(3)")
            program("os.closerange(3, 64)")
            before = program("[os.pipe() for _ in range(4)]")
            program("work(4)")
        assert program("is_on()") == "False"
        assert program("[os.pipe() for _ in range(4)]") != before  # they are still open
        assert program.end() == ""
    assert by_operation(read_profile("x.qprof"))[SELECT] == 7


@pytest.mark.slow
def test_one_of_several_that_stands_still_at_the_end() -> None:
    """The other processes are in the trace at once. The stopped one ends its recording when it
    continues.
    """
    with running(**STANDBY) as one, running(**STANDBY) as other:
        command = Command(one.pid, other.pid, "-o", "x.qprof", "--no-report")
        one("work(3)")
        other("work(4)")
        os.kill(one.pid, signal.SIGSTOP)
        command.process.send_signal(signal.SIGINT)
        while other("is_on()") == "True":
            pass
        command.process.send_signal(signal.SIGINT)  # a person would give up by now
        message = command.result()
        assert (
            f"process {one.pid} has not answered yet; its recording ends when the process continues"
            in message
        )
        assert by_operation(read_profile("x.qprof"))[SELECT] == 7
        os.kill(one.pid, signal.SIGCONT)
        while one("is_on()") == "True":
            pass
        assert one.end() == ""
        assert other.end() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a namespace of its own")
@pytest.mark.slow
def test_a_process_in_another_time_namespace_lives() -> None:
    """Its start time is another number there."""
    program = (
        "import sqlite3, sys, queryprof; queryprof.install('traces/x.qprof')\n"
        "sqlite3.connect(':memory:').execute('SELECT ?', (1,))\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    os.mkdir("traces")
    Path("program.py").write_text(program)
    unshare = ["unshare", "--time", "--boottime", "100000", "--fork"]
    with subprocess.Popen(
        [*unshare, QUERYPROF.with_name("python"), "program.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            pytest.skip("no namespace can be made here")
        subprocess.run([QUERYPROF, "doctor", "--clean"], check=True, capture_output=True)
        assert not Path("traces/x.qprof").exists()
        done = subprocess.run(
            [QUERYPROF, "report", "traces"], check=True, capture_output=True, text=True
        )
        assert "1 process: 1 running" in done.stderr
        process.communicate()
    assert by_operation(read_profile("traces/x.qprof"))[SELECT] == 1
