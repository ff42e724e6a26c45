"""Run a command with the same streams, signals and exit status as without queryprof."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import click

from queryprof.cli.signals import SignalForwarding
from queryprof.errors import QueryprofError

EXIT_NOT_FOUND = 127


@dataclass(frozen=True)
class Status:
    """How a command ended: its return code from subprocess, which is negative for a signal."""

    code: int

    def exit(self) -> None:
        """End this process like the command: with the same status, or by the same signal."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self.code < 0:
            end_by_signal(-self.code)
        sys.exit(self.code)


def end_by_signal(number: int) -> NoReturn:
    """End this process by a signal, or with a shell's exit status for the signal.

    The first process of a container cannot end itself by a signal.
    """
    _no_core_dump()
    signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    os.kill(os.getpid(), number)
    sys.exit(128 + number)


def python_command(command: Sequence[str]) -> tuple[list[str], str]:
    """Return the command line to start, and the program's name from its script or module.

    This Python runs Python files, directories with __main__.py, -m MODULE and -c CODE.
    """
    first = command[0]
    if first in ("-m", "-c"):
        if len(command) < 2:
            raise QueryprofError(
                f"run {first}: needs {'a module' if first == '-m' else 'code'} after it"
            )
        return [sys.executable, *command], command[1] if first == "-m" else "python"
    name = os.path.splitext(os.path.basename(first))[0] or "program"
    if os.path.isfile(first) and (first.endswith((".py", ".pyc", ".pyz"))):
        return [sys.executable, *command], name
    if os.path.isdir(first) and os.path.isfile(os.path.join(first, "__main__.py")):
        return [sys.executable, *command], os.path.basename(os.path.normpath(first))
    return list(command), name


def run_command(
    arguments: Sequence[str], environment: Mapping[str, str], signals: SignalForwarding
) -> Status:
    """Run a command to its end, with this process's streams, descriptors, limits and signals.

    The command inherits ignored signals (from nohup, or from a shell's background job).

    Raises:
        QueryprofError: no such command.
    """
    previous = signal.getsignal(signal.SIGCHLD)
    try:
        child = _start_command(arguments, environment, previous is signal.SIG_IGN)
        return Status(signals.wait(child))
    finally:
        signal.signal(signal.SIGCHLD, previous)


def _not_found_message(name: str) -> str:
    if name.startswith("-"):
        return f"{name}: no such option of run;{_similar_option(name)} see queryprof run --help"
    if os.path.isdir(name):
        return f"{name}: is a directory without __main__.py"
    if os.path.exists(name):
        return f"{name}: neither a command nor a Python script (its name must end in .py)"
    return f"{name}: no such {'file' if name.endswith('.py') else 'command'}"


def _similar_option(name: str) -> str:
    from difflib import get_close_matches

    context = click.get_current_context(silent=True)
    known = [option for one in context.command.params for option in one.opts] if context else []
    return "".join(f" did you mean {one}?" for one in get_close_matches(name, known, 1))


def _start_command(
    arguments: Sequence[str], environment: Mapping[str, str], ignores_children: bool
) -> subprocess.Popen[bytes]:
    """Start the command. Raises QueryprofError."""
    # posix_spawn(3) would leave two of the C library's own signals ignored. The module documents
    # this switch.
    setattr(subprocess, "_USE_POSIX_SPAWN", False)  # noqa: B010 a constant to type checkers
    if ignores_children:  # otherwise the system would not keep the command's status
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        return subprocess.Popen(
            arguments,
            env=environment,
            close_fds=False,
            preexec_fn=_ignore_children if ignores_children else None,  # noqa: PLW1509
        )
    except OSError as error:
        if isinstance(error, FileNotFoundError) or os.path.isdir(arguments[0]):
            raise QueryprofError(_not_found_message(arguments[0])) from error
        raise QueryprofError(f"{arguments[0]}: cannot be run: {error.strerror}") from error


def _ignore_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _no_core_dump() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass  # at worst, this process's core dump overwrites the program's
