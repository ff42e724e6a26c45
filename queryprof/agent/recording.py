"""The commands that an agent may have recorded: those that the user named, word for word."""

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
from time import monotonic, sleep
from typing import IO, Any

from queryprof.errors import QueryprofError
from queryprof.report.findings.brief import shortened

OUTPUT_SHOWN = 1500
"""Characters of the end of a command's output."""


LARGEST_OUTPUT = 16 << 20
"""Bytes of it that are kept meanwhile."""

STEP_S, PATIENCE_S = 0.1, 3.0
"""How often a command is looked at, and how long it may take to end after SIGTERM."""


class Commands:
    """Runs allowed commands.

    Args:
        allowed: as the user typed them.
        directory: where they run, and where their traces are written.
        limit_s: how long one may take.
        with_parameters: their traces keep the values of parameters, which `prove` needs.

    Raises:
        QueryprofError: one cannot be split into words.
    """

    def __init__(
        self,
        allowed: Sequence[str],
        directory: str,
        limit_s: float,
        with_parameters: bool = False,
    ) -> None:
        self.allowed, self.with_parameters = tuple(allowed), with_parameters
        self._directory, self._limit_s = directory, limit_s
        self._running: set[subprocess.Popen[bytes]] = set()
        for command in self.allowed:
            try:
                shlex.split(command)
            except ValueError as error:
                raise QueryprofError(f"--record {command!r}: {error}") from error

    def record(self, command: str, is_cancelled: Event) -> Mapping[str, Any]:
        """Records a command, and ends it when the event is set.

        Raises:
            QueryprofError: it is not allowed, takes too long, or recorded nothing.
        """
        if command not in self.allowed:
            raise QueryprofError(
                f"this command is not allowed; allowed are: {'; '.join(self.allowed)}"
            )
        handle, trace = mkstemp(".qprof", "queryprof-", self._directory)
        os.close(handle)
        try:
            with TemporaryFile() as output:
                status = self._run(shlex.split(command), trace, output, is_cancelled)
                end = _end_of(output)
        finally:
            is_there = os.path.getsize(trace) > 0
            if not is_there:
                os.unlink(trace)
        if is_cancelled.is_set():
            raise QueryprofError("the call was cancelled, and the command ended")
        if status is None:
            raise QueryprofError(f"it took more than {self._limit_s:g} s, and was ended: {end}")
        if not is_there:
            raise QueryprofError(f"nothing was recorded; status {status}: {end}")
        return {"trace": os.path.basename(trace), "exit_status": status, "output_end": end}

    def _run(
        self, words: list[str], trace: str, output: IO[bytes], is_cancelled: Event
    ) -> int | None:
        """The exit status of a command that is recorded; None: it was ended."""
        run = [sys.executable, "-P", "-m", "queryprof", "run", "--no-report", "-o", trace]
        parameters = ["--parameters"] * self.with_parameters
        process = subprocess.Popen(
            [*run, *parameters, "--", *words],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all that it starts can be ended with it
        )
        self._running.add(process)
        until = monotonic() + self._limit_s
        try:
            while process.poll() is None:
                if monotonic() > until or is_cancelled.is_set():
                    _end(process)
                    return None
                if os.fstat(output.fileno()).st_size > LARGEST_OUTPUT:
                    os.ftruncate(output.fileno(), 0)
                sleep(STEP_S)
            return process.returncode
        finally:
            self._running.discard(process)

    def end(self) -> None:
        """Ends what still runs."""
        for process in tuple(self._running):
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command and what it has started: it may end by itself for a while, and then must."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(OSError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)


def _end_of(output: IO[bytes]) -> str:
    """The last characters of a command's output."""
    size = os.fstat(output.fileno()).st_size
    output.seek(max(0, size - 4 * OUTPUT_SHOWN))
    text = output.read().decode(errors="replace").replace("\0", "")
    lines = [shortened(line, OUTPUT_SHOWN) for line in text.splitlines()]
    return "\n".join(lines)[-OUTPUT_SHOWN:]
