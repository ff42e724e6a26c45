"""Sandboxes (seccomp) that end a process at a system call, or refuse the call."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import by_operation
from queryprof.collect.reader import read_profile

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", "x86_64"),
        reason="the numbers of the system calls are those of Linux on x86-64",
    ),
]

FLOCK, PTRACE, PROCESS_VM_READV, PROCESS_VM_WRITEV = 73, 101, 310, 311
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER_MODE = 22, 38, 2

PROGRAM = """
import sqlite3
before = sqlite3.connect(":memory:")
import queryprof
queryprof.install("x.qprof")
for db in (before, sqlite3.connect(":memory:")):
    for number in range(10):
        db.execute("SELECT ?", (number,)).fetchall()
"""


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def restrict(action: int, numbers: tuple[int, ...]) -> None:
    """Let the kernel do this at these system calls of the process (seccomp(2))."""
    steps = [(LOAD_NUMBER, 0, 0, 0)]
    for number in numbers:
        steps += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, action)]
    steps.append((RETURN, 0, 0, ALLOW))
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Filter(len(steps), ctypes.cast(packed, ctypes.c_void_p))
    library = ctypes.CDLL(None)
    if library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or library.prctl(
        PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(program), 0, 0
    ):
        os._exit(77)


def run_restricted(
    action: int, numbers: tuple[int, ...], *command: str
) -> subprocess.CompletedProcess[str]:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from core.test_sandboxes import restrict\n"
        f"restrict({action}, {numbers})\n"
        "os.execv(sys.argv[2], sys.argv[2:])\n"
    )
    tests = str(Path(__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", code, tests, sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == 77:
        pytest.skip("no seccomp filters here")
    return result


def test_a_call_that_ends_the_process_is_not_needed() -> None:
    """Counters work as well, on connections of before the recording and of later."""
    calls = (PROCESS_VM_READV, PROCESS_VM_WRITEV, PTRACE)
    result = run_restricted(KILL, calls, "-c", PROGRAM)
    assert (result.returncode, result.stderr) == (0, "")
    profile = read_profile("x.qprof")
    assert by_operation(profile)["SELECT ?", "execute"] == 20
    counted = [one for one in profile.aggregates if one.operation == "execute"]
    assert sum(one.counted for one in counted) == 20


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOLCK, errno.ENOSYS])
def test_a_trace_is_written_where_files_cannot_be_locked(error: int) -> None:
    """A container or a network file system may have no locks."""
    Path("program.py").write_text(PROGRAM.replace('queryprof.install("x.qprof")', ""))
    command = ("-m", "queryprof", "run", "--no-report", "-o", "x.qprof", "program.py")
    result = run_restricted(REFUSE | error, (FLOCK,), *command)
    assert (result.returncode, result.stderr) == (0, "")
    assert by_operation(read_profile("x.qprof"))["SELECT ?", "execute"] == 20
