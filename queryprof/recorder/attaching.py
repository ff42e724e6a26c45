"""In the command: check whether a process can be recorded, connect, and end the recording."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from queryprof.errors import QueryprofError
from queryprof.recorder.messages import peer_ids, receive_message, send_message, socket_name
from queryprof.recorder.standby import SIGNAL, STANDBY
from queryprof.version import __version__

ANSWER_TIMEOUT_S = 5.0
"""How long a process may take to answer. To answer, its main thread must run Python code."""

BEGIN_TIMEOUT_S = 60.0
"""How long a process may take to begin or end the recording, which normally takes milliseconds."""

END_TIMEOUT_S = 10.0
"""How long a process may take to answer when the recording ends."""

AGAIN_S = 1.0
"""Interval for repeating the signal. If a signal comes just before a blocking system call, the
interpreter handles the signal only after the call. A repeated signal interrupts the call.
"""

FIRST_REPEATS = 1
"""How many times to repeat the signal for the first request: the program may have its own handler.
For the request that ends the recording, the signal is repeated until there is an answer, because
the process may lack a descriptor or a thread for a moment.
"""

NAME_WAIT_MS = 10
"""Interval for checking whether another command has released the name of the socket."""

ENDS_MS = 200.0
"""How long to wait for the end of a process that has closed its connection."""

MAX_REASON_CHARACTERS = 300
"""Length limit of the reason that a process gives for a refusal, in characters."""

NAMESPACES = ("pid", "mnt", "net")
"""Namespaces that the command and the process must share: for process ids, the recording's
directory, and the socket.
"""

SCRIPT = """\
import sys
def attach():
    try:
        from queryprof.recorder import autoload
    except ModuleNotFoundError:
        sys.path.append({parent!r})
        try:
            from queryprof.recorder import autoload
        finally:
            sys.path.remove({parent!r})
    autoload.look_for_command()
attach()
"""
"""Code that the program runs through sys.remote_exec, in a namespace of its own. If the program's
environment has no queryprof, the code uses the command's queryprof, which is for the same Python
version.
"""


class AttachError(QueryprofError):
    """A process cannot be attached to."""


class CannotSignalError(AttachError):
    """There is no way to make a process look for commands."""


class AttachedProcess:
    """A process that `queryprof attach` has made record itself. `end` stops the recording.

    Attributes:
        pid: the process id.
    """

    def __init__(self, pid: int, runner: str, pidfd: int) -> None:
        self.pid = pid
        self._runner = runner
        self._pidfd = pidfd  # owned descriptor that refers to the process (pidfd_open(2))

    def fileno(self) -> int:
        """The descriptor for select: readable when the process has ended."""
        return self._pidfd

    def end(self, timeout_s: float | None = None, stop: int | None = None) -> str:
        """End the recording. Call this once.

        Returns why the recording has not ended yet and when it will, or "". A process that has
        ended has also ended its recording.

        Args:
            timeout_s: None for END_TIMEOUT_S.
            stop: a descriptor that becomes readable when this method must stop waiting.
        """
        try:
            limit_s = END_TIMEOUT_S if timeout_s is None else timeout_s
            request_answer(self.pid, self._pidfd, limit_s, stop, end=self._runner)
        except AttachError as error:
            later = (
                "with the process"
                if isinstance(error, CannotSignalError)
                else "when the process continues"
            )
            is_over = has_ended(self._pidfd)
            return "" if is_over else f"{error}; its recording ends {later}"
        finally:
            os.close(self._pidfd)
        return ""


def attach(pid: int, runner: str, stop: int | None = None) -> AttachedProcess:
    """Make a process record itself for a runner (`Runner.variable`).

    Args:
        stop: as for AttachedProcess.end.

    Raises:
        AttachError: the process cannot be recorded. Nothing was begun in the process.
    """
    pidfd = open_process(pid)
    try:
        found = request_answer(
            pid, pidfd, ANSWER_TIMEOUT_S, stop, version=__version__, runner=runner
        )
        if not found.get("began"):
            if not found and has_ended(pidfd, ENDS_MS):
                raise AttachError(f"process {pid} has ended")
            reason = str(found.get("refused", "its answer is invalid"))[:MAX_REASON_CHARACTERS]
            raise AttachError(f"process {pid}: {reason}")
    except BaseException:
        os.close(pidfd)
        raise
    return AttachedProcess(pid, runner, pidfd)


def open_process(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (OSError, OverflowError) as error:
        raise AttachError(f"no running process {pid}") from error


def has_ended(pidfd: int, within_ms: float = 0) -> bool:
    return bool(_poll_for(pidfd).poll(within_ms))


def request_answer(
    pid: int, pidfd: int, timeout_s: float, stop: int | None, **request: object
) -> dict[str, Any]:
    """Make a process connect, and send a request. Raises AttachError without an answer."""
    with (
        _listening_socket(pid, pidfd, timeout_s, stop) as listening,
        _process_connecting(pid, pidfd) as again,
    ):
        repeats = sys.maxsize if "end" in request else FIRST_REPEATS
        connection = _accept_connection(pid, pidfd, listening, timeout_s, stop, again, repeats)
    with connection:
        try:
            connection.settimeout(ANSWER_TIMEOUT_S)
            send_message(connection, **request)
            return receive_message(connection, BEGIN_TIMEOUT_S)
        except OSError as error:
            raise AttachError(f"process {pid} has not answered: {error}") from error


@contextmanager
def _process_connecting(pid: int, pidfd: int) -> Iterator[Callable[[], None]]:
    """Make the process connect while the block runs. Yields a function that repeats the attempt.

    Raises AttachError if the process cannot be made to connect.
    """
    _refuse_other_user(pid)
    _refuse_other_namespaces(pid)
    environment = _process_environment(pid)
    if _is_in_standby(pid, environment):

        def again() -> None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, SIGNAL)

        again()
        yield again
        return
    if not hasattr(sys, "remote_exec"):
        raise CannotSignalError(
            f"process {pid} is not in standby: start it with QUERYPROF=standby (not needed with"
            " Python 3.14 or newer, if this command uses the same Python)"
        )
    if any(one.startswith(b"PYTHON_DISABLE_REMOTE_DEBUG=") for one in environment):
        raise CannotSignalError(
            f"process {pid} has remote debugging switched off (PYTHON_DISABLE_REMOTE_DEBUG): start"
            " it with QUERYPROF=standby"
        )
    with _attach_script() as path:
        _remote_exec(pid, path)
        try:
            yield lambda: None  # the script waits until the process runs it
        except AttachError:
            # Leave an empty script in its place, because the process may still look for it.
            with suppress(AttachError):
                _remote_exec(pid, os.devnull)
            raise


def _refuse_other_user(pid: int) -> None:
    user = int(_status_field(pid, "Uid").split()[1])
    if user != os.geteuid():
        raise AttachError(f"process {pid} belongs to user {user}: run this command as that user")


def _refuse_other_namespaces(pid: int) -> None:
    for name in NAMESPACES:
        try:
            is_same = (
                os.stat(f"/proc/{pid}/ns/{name}").st_ino == os.stat(f"/proc/self/ns/{name}").st_ino
            )
        except FileNotFoundError as error:
            raise AttachError(f"no running process {pid}") from error
        except OSError as error:
            raise AttachError(f"process {pid} cannot be inspected: {error.strerror}") from error
        if not is_same:
            raise AttachError(f"process {pid} runs in another container: run this command there")


def _status_field(pid: int, field: str) -> str:
    """Return a field of /proc/PID/status (proc_pid_status(5)). Raises AttachError."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(line for line in lines if line.startswith(f"{field}:")).partition(":")[2]
    except (OSError, StopIteration) as error:
        raise AttachError(f"no running process {pid}") from error


def _process_environment(pid: int) -> list[bytes]:
    """Return the environment with which a process was started; [] if unreadable."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _is_in_standby(pid: int, environment: list[bytes]) -> bool:
    """Return whether a process is in standby and has a handler for the signal.

    If a process has overwritten its environment with its title, as setproctitle does, only the
    handler counts.
    """
    caught = int(_status_field(pid, "SigCgt"), 16)
    is_overwritten = not any(b"=" in one for one in environment)
    was_wanted = is_overwritten or f"QUERYPROF={STANDBY}".encode() in environment
    return was_wanted and bool(caught >> (SIGNAL - 1) & 1)


@contextmanager
def _attach_script() -> Iterator[str]:
    """Write SCRIPT to a temporary file, and yield the file's path."""
    parent = str(Path(__file__).parents[2])
    with tempfile.NamedTemporaryFile("w", prefix="queryprof-attach-", suffix=".py") as file:
        file.write(SCRIPT.format(parent=parent))
        file.flush()
        yield file.name


def _remote_exec(pid: int, script: str) -> None:
    """Run a script in a process through the debugger's interface of Python 3.14 (PEP 768).

    Raises AttachError.
    """
    try:
        sys.remote_exec(pid, script)  # type: ignore[attr-defined]
    except PermissionError as error:
        raise AttachError(
            f"this command may not trace process {pid} (ptrace(2); kernel.yama.ptrace_scope)"
        ) from error
    except (RuntimeError, OSError) as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise AttachError(
            f"cannot attach to process {pid} with Python {version} ({error}): run this command"
            " with the process's Python, or start the process with QUERYPROF=standby"
        ) from error


@contextmanager
def _listening_socket(
    pid: int, pidfd: int, timeout_s: float, stop: int | None
) -> Iterator[socket.socket]:
    """Yield the socket to which the process connects.

    Raises AttachError if another command uses the socket's name and does not release the name in
    time.
    """
    waiting = _poll_for(pidfd, stop)
    deadline_s = time.monotonic() + timeout_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        while True:
            try:
                listening.bind(socket_name(pid))
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                if time.monotonic() > deadline_s or waiting.poll(NAME_WAIT_MS):
                    raise AttachError(_name_taken_message(pid)) from error
        listening.listen()
        yield listening


def _name_taken_message(pid: int) -> str:
    """Return the message that another command already listens for this process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)  # a full queue of connections must not block this command
        try:
            asking.connect(socket_name(pid))
            holder, user = peer_ids(asking)
        except OSError:
            return f"another command is about to attach to process {pid}"
    whose = "" if user == os.geteuid() else f" of user {user}"
    return (
        f"process {holder}{whose} already waits for an answer of process {pid}: try again, or end"
        f" process {holder}"
    )


def _poll_for(*files: int | None) -> select.poll:
    """Return a poll that waits until a descriptor is readable."""
    waiting = select.poll()
    for file in files:
        if file is not None:
            waiting.register(file, select.POLLIN)
    return waiting


def _accept_connection(
    pid: int,
    pidfd: int,
    listening: socket.socket,
    timeout_s: float,
    stop: int | None,
    again: Callable[[], None],
    repeats: int,
) -> socket.socket:
    """Return the process's connection. Raises AttachError if the process ended or does not answer.

    Args:
        again: repeats the signal.
        repeats: how many times to call `again`.
    """
    waiting = _poll_for(listening.fileno(), pidfd, stop)
    deadline_s = time.monotonic() + timeout_s
    while (left_s := deadline_s - time.monotonic()) > 0:
        ready = {file for file, _ in waiting.poll(min(left_s, AGAIN_S) * 1000)}
        if not ready and repeats:
            repeats -= 1
            again()
        if pidfd in ready:
            raise AttachError(f"process {pid} has ended")
        if stop in ready:
            raise AttachError(f"process {pid} has not answered yet")
        if listening.fileno() in ready:
            connection, _ = listening.accept()
            if peer_ids(connection)[0] == pid:
                return connection
            connection.close()
    raise AttachError(
        f"process {pid} has not answered within {timeout_s:g} s. Its main thread may be"
        " stopped, waiting or in C code. Or the process has no free file descriptor, or handles or"
        " blocks SIGURG itself"
    )
