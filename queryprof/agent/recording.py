"""Record commands for an agent, but only the commands that the user listed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile, mkstemp
from threading import Event
from time import sleep
from typing import IO, Any

from queryprof.errors import QueryprofError
from queryprof.report.findings.brief import shorten_text

MAX_SHOWN_CHARACTERS = 1500
"""Length limit of the shown end of a command's output, in characters."""


MAX_OUTPUT_BYTES = 16 << 20
"""Size limit of the output that is kept while a command runs, in bytes."""

STEP_S, END_TIMEOUT_S = 0.1, 3.0
"""Interval for checking a command, and how long the command may take to end after SIGTERM."""


class AllowedCommands:
    """Runs allowed commands.

    Args:
        allowed: the commands as typed by the user.
        directory: where the commands run, and where their traces are written.
        with_parameters: traces keep the values of parameters, which `prove` needs.

    Raises:
        QueryprofError: a command cannot be split into words.
    """

    def __init__(
        self, allowed: Sequence[str], directory: str, with_parameters: bool = False
    ) -> None:
        self.allowed, self.with_parameters = tuple(allowed), with_parameters
        self._directory = directory
        self._running: set[subprocess.Popen[bytes]] = set()
        for command in self.allowed:
            try:
                shlex.split(command)
            except ValueError as error:
                raise QueryprofError(f"--record {command!r}: {error}") from error

    def record(self, command: str, is_cancelled: Event) -> Mapping[str, Any]:
        """Record a command, and end it when the event is set.

        Raises:
            QueryprofError: the command is not allowed, was cancelled, or recorded nothing.
        """
        if command not in self.allowed:
            raise QueryprofError(
                f"this command is not allowed; allowed commands: {'; '.join(self.allowed)}"
            )
        handle, trace = mkstemp(".qprof", "queryprof-", self._directory)
        os.close(handle)
        try:
            with TemporaryFile() as output:
                status = self._run(shlex.split(command), trace, output, is_cancelled)
                end = _output_tail(output)
        finally:
            is_there = os.path.getsize(trace) > 0
            if not is_there:
                os.unlink(trace)
        if is_cancelled.is_set():
            raise QueryprofError(
                "the client cancelled the tool call, so queryprof ended the command"
            )
        if not is_there:
            raise QueryprofError(f"nothing was recorded; status {status}: {end}")
        return {"trace": os.path.basename(trace), "exit_status": status, "output_end": end}

    def _run(
        self, words: list[str], trace: str, output: IO[bytes], is_cancelled: Event
    ) -> int | None:
        """Record a command, and return its exit status; None if the event ended it."""
        run = [sys.executable, "-P", "-m", "queryprof", "run", "--no-report", "-o", trace]
        parameters = ["--parameters"] * self.with_parameters
        process = subprocess.Popen(
            [*run, *parameters, "--", *words],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its child processes can be ended together with it
        )
        self._running.add(process)
        try:
            while process.poll() is None:
                if is_cancelled.is_set():
                    _terminate_command(process)
                    return None
                if os.fstat(output.fileno()).st_size > MAX_OUTPUT_BYTES:
                    os.ftruncate(output.fileno(), 0)
                sleep(STEP_S)
            return process.returncode
        finally:
            self._running.discard(process)

    def end(self) -> None:
        """End all running commands."""
        for process in tuple(self._running):
            _terminate_command(process)


def _terminate_command(process: subprocess.Popen[bytes]) -> None:
    """End a command and its children, first by SIGTERM and then by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(OSError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)


def _output_tail(output: IO[bytes]) -> str:
    """Return the end of a command's output."""
    size = os.fstat(output.fileno()).st_size
    output.seek(max(0, size - 4 * MAX_SHOWN_CHARACTERS))
    text = output.read().decode(errors="replace").replace("\0", "")
    lines = [shorten_text(line, MAX_SHOWN_CHARACTERS) for line in text.splitlines()]
    return "\n".join(lines)[-MAX_SHOWN_CHARACTERS:]
