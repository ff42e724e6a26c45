"""Running programs that execute one line of their input at a time, and answer each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import queryprof.startup

STANDBY = {
    "QUERYPROF": "standby",
    "PYTHONPATH": next(iter(queryprof.startup.__path__)),
}

OBEYS = """
import os, sqlite3, sys
connection = sqlite3.connect(":memory:", check_same_thread=False)
connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(1000)])

def work(times):
    for number in range(int(times)):
        connection.execute("SELECT ?", (number,)).fetchone()

def scan():
    return len(connection.execute("SELECT a FROM t WHERE a + 0 > 990").fetchall())

def is_on():
    core = sys.modules.get("queryprof.core._core")
    return bool(core and core.is_on())

def forks():
    child = os.fork()
    if not child:
        work(7)
        os._exit(20 + is_on())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

print(os.getpid(), flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
"""

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


PATIENT = """
from queryprof.recorder import attaching
attaching.ANSWER_TIMEOUT_S = attaching.END_TIMEOUT_S = 600.0
from queryprof.cli.main import main
main()
"""
ATTACH = [sys.executable, "-c", PATIENT, "attach"]
"""`queryprof attach`, which waits for an answer on a machine of any speed."""


class Program:
    """A running program, and how to send commands to it.

    Attributes:
        pid: its process id.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = int(self._line())

    def __call__(self, expression: str) -> str:
        """Return the program's value of an expression."""
        self._input.write(f"{expression}\n")
        self._input.flush()
        return self._line()

    @property
    def _input(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> str:
        """Let it end. Return its stderr."""
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return errors


@contextmanager
def running(
    text: str = OBEYS, *options: str, python: str = sys.executable, **environment: str
) -> Iterator[Program]:
    """Run a program. It ends without an error, unless it is killed."""
    Path("program.py").write_text(text)
    process = subprocess.Popen(
        [python, *options, "program.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            process.communicate(timeout=60)


class Command:
    """A `queryprof attach` that has begun to record, or has ended."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [*ATTACH, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.message = self.process.stderr.readline()

    def end(self, number: int = signal.SIGINT) -> str:
        """End it, and return its later output. It has no error."""
        self.process.send_signal(number)
        return self.result()

    def result(self, status: int = 0) -> str:
        """Wait for its end."""
        assert self.process.stderr is not None
        errors = self.process.stderr.read()  # communicate() loses what readline() has buffered
        self.process.communicate(timeout=60)
        assert self.process.returncode == status, errors
        return errors


@contextmanager
def attached(program: Program, *options: str, output: str = "x.qprof") -> Iterator[Command]:
    """Record a running program while the block runs."""
    command = Command(program.pid, "-o", output, *options)
    assert "is recorded" in command.message, command.message
    try:
        yield command
    finally:
        if command.process.returncode is None:
            command.end()
