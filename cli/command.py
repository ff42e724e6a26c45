"""Runs a command as without queryprof: with the same streams, signals and exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from queryprof.errors import QueryprofError

OF_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""Signals of keys (Ctrl-C): the terminal sends them to the command itself, too, in its process group."""

FORWARDED = (
    *OF_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
    signal.SIGCONT,
)  # fmt: skip
"""Signals that are sent on to the command: a signal to queryprof is meant for the program."""

EXIT_NOT_FOUND = 127
EXIT_NOT_EXECUTABLE = 126


@dataclass(frozen=True)
class Status:
    """How a command ended: the return code of subprocess, negative for a signal."""

    code: int

    def exit(self) -> None:
        """Ends this process in the same way: with the same status, or by the same signal."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self.code < 0:
            _no_core_dump()
            signal.signal(-self.code, signal.SIG_DFL) if -self.code != signal.SIGKILL else None
            os.kill(os.getpid(), -self.code)
        sys.exit(self.code)


def python_command(command: Sequence[str]) -> tuple[list[str], str]:
    """The arguments to start, and the name of the program: its script or module.

    A Python file, a directory with __main__.py, -m MODULE and -c CODE are run by this Python.
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


def run_command(arguments: Sequence[str], environment: Mapping[str, str]) -> Status:
    """Runs a command to its end with this process's streams, descriptors, limits and signals: what
    is ignored here (by nohup, or in a shell's background) is ignored there.

    Raises:
        QueryprofError: there is no such command.
    """
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        if child is None:
            early.append(number)
        elif number not in OF_TERMINAL:
            child.send_signal(number)

    previous = {number: signal.getsignal(number) for number in (*FORWARDED, signal.SIGCHLD)}
    ignored = {number for number, handler in previous.items() if handler is signal.SIG_IGN}
    try:
        # What is ignored is inherited. A handler is not: the default would take its place.
        for number in set(FORWARDED) - ignored:
            signal.signal(number, forward)
        child = _started(arguments, environment, signal.SIGCHLD in ignored)
        for number in ignored & set(FORWARDED):  # the program may handle them, unlike us
            signal.signal(number, forward)
        for early_number in early:
            child.send_signal(early_number)
        return Status(_wait(child))
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _not_there(name: str) -> str:
    if name.startswith("-"):
        return f"{name}: run has no such option (queryprof run --help shows those it has)"
    return f"{name}: there is no such {'file' if name.endswith('.py') else 'command'}"


def _started(
    arguments: Sequence[str], environment: Mapping[str, str], ignores_children: bool
) -> subprocess.Popen[bytes]:
    """The command, running. Raises QueryprofError."""
    # posix_spawn(3) would leave two of the C library's own signals ignored; the module documents this
    # switch.
    setattr(subprocess, "_USE_POSIX_SPAWN", False)  # noqa: B010 a constant to type checkers
    if ignores_children:  # then the system would not keep the command's status
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        return subprocess.Popen(
            arguments, env=environment, close_fds=False,
            preexec_fn=_ignore_children if ignores_children else None,  # noqa: PLW1509
        )  # fmt: skip
    except FileNotFoundError as error:
        raise QueryprofError(_not_there(arguments[0])) from error
    except OSError as error:
        raise QueryprofError(f"{arguments[0]}: cannot be run: {error.strerror}") from error


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Waits for a command to end, and sends signals on meanwhile, each as it is taken: who has sent it is known
    in no handler.
    """
    waited = {*FORWARDED, signal.SIGCHLD}
    before = signal.signal(signal.SIGCHLD, _ignore)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        while (status := child.poll()) is None:
            sent = signal.sigwaitinfo(waited)
            if sent.si_signo != signal.SIGCHLD and not _has_it(child, sent):
                child.send_signal(sent.si_signo)
        return status
    finally:
        while signal.sigtimedwait(waited, 0):
            pass  # too late for the command
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGCHLD, before)


def _has_it(child: subprocess.Popen[bytes], sent: signal.struct_siginfo) -> bool:
    """Whether the terminal has sent a signal to the command as well: as the kernel does, to all of a group."""
    if (
        sent.si_signo not in OF_TERMINAL or sent.si_code <= 0
    ):  # SI_USER, SI_QUEUE, SI_TKILL: kill(2)
        return False
    try:
        return os.getpgid(child.pid) == os.getpgrp()
    except ProcessLookupError:
        return True


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignores interrupts while the block runs: a second Ctrl-C is meant for the program."""
    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.SIG_IGN:  # which the command inherits
        signal.signal(signal.SIGINT, _ignore)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _ignore_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Does nothing. SIG_IGN would be inherited by the command; a handler is not."""


def _no_core_dump() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass  # the program's core file may be followed by ours
