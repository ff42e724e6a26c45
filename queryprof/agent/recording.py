"""The commands that an agent may have recorded: those that the user named, word for word."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from tempfile import mkstemp
from typing import Any

from queryprof.errors import QueryprofError
from queryprof.report.findings.brief import shortened

OUTPUT_SHOWN = 1500
"""Characters of the end of a command's output."""


class Commands:
    """Runs allowed commands.

    Args:
        allowed: as the user typed them.
        directory: where they run, and where their traces are written.
        limit_s: how long one may take.
    """

    def __init__(self, allowed: Sequence[str], directory: str, limit_s: float) -> None:
        self.allowed = tuple(allowed)
        self._directory, self._limit_s = directory, limit_s

    def record(self, command: str) -> Mapping[str, Any]:
        """Records a command.

        Raises:
            QueryprofError: it is not allowed, takes too long, or recorded nothing.
        """
        if command not in self.allowed:
            raise QueryprofError(
                f"this command is not allowed; allowed are: {'; '.join(self.allowed)}"
            )
        handle, trace = mkstemp(".qprof", "queryprof-", self._directory)
        os.close(handle)
        run = [sys.executable, "-P", "-m", "queryprof", "run", "--no-report", "-o", trace, "--"]
        try:
            done = subprocess.run(
                [*run, *shlex.split(command)],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=self._limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise QueryprofError(
                f"it took longer than {self._limit_s:g} s, and was ended"
            ) from None
        output = done.stdout.decode(errors="replace")
        if not os.path.getsize(trace):
            os.unlink(trace)
            end = shortened(output[-OUTPUT_SHOWN:], OUTPUT_SHOWN)
            raise QueryprofError(f"nothing was recorded; status {done.returncode}: {end}")
        return {
            "trace": os.path.basename(trace),
            "exit_status": done.returncode,
            "output_end": output[-OUTPUT_SHOWN:],
        }
