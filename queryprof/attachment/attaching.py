"""The command's side: finds out whether a process can be attached to, has it connect, and ends the
recording.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from queryprof.attachment.messages import name_of, peer_of, receive, send
from queryprof.attachment.standby import SIGNAL, STANDBY
from queryprof.errors import QueryprofError
from queryprof.version import __version__

ANSWER_TIMEOUT_S = 5.0
"""How long a process may take to answer: its main thread must run Python for that."""

BEGIN_TIMEOUT_S = 60.0
"""How long it may take to begin and to end the recording, which is work of milliseconds."""

NAMESPACES = ("pid", "mnt", "net")
"""Those that both sides must share: a process id, the directory of a recording, the socket."""

SCRIPT = """\
import sys
def attach():
    try:
        from queryprof import autoload
    except ModuleNotFoundError:
        sys.path.append({parent!r})
        try:
            from queryprof import autoload
        finally:
            sys.path.remove({parent!r})
    autoload.look_for_command()
attach()
"""
"""What the program runs by sys.remote_exec, in a namespace of its own. Where its environment has no
queryprof, it borrows the command's, which is of the same Python."""


class AttachError(QueryprofError):
    """A process cannot be attached to."""


class Attachment:
    """A connection to a process, which records itself while it is open.

    Attributes:
        pid: of the process.
        has_ended: whether the process is gone, or has ended it.
    """

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self.has_ended = False
        self._connection = connection

    def fileno(self) -> int:
        """For select: readable when the process has ended."""
        return self._connection.fileno()

    def end(self) -> None:
        """Ends the recording. A process that is gone has ended it."""
        with suppress(OSError):
            send(self._connection, end=True)
        try:
            self.has_ended = not receive(self._connection).get("ended")
        except TimeoutError as error:
            raise AttachError(
                f"process {self.pid} has not ended the recording within {BEGIN_TIMEOUT_S:.0f} s; it"
                " does when it runs on"
            ) from error
        except OSError:
            self.has_ended = True
        finally:
            self._connection.close()


def attach(pid: int, runner: str) -> Attachment:
    """Has a process record itself for a runner (`Runner.variable`).

    Raises:
        AttachError: it cannot be; then nothing was begun there.
    """
    try:
        process = os.pidfd_open(pid)
    except (OSError, OverflowError) as error:
        raise AttachError(f"no process {pid} runs") from error
    try:
        with _listening(pid) as listening, _looking(pid, process):
            connection = _answer_of(pid, process, listening)
    finally:
        os.close(process)
    try:
        send(connection, version=__version__, runner=runner)
        found = receive(connection)
    except OSError as error:
        connection.close()
        raise AttachError(f"process {pid} has not begun to record: {error}") from error
    if not found.get("began"):
        connection.close()
        raise AttachError(f"process {pid}: {found.get('refused', 'it has ended')}")
    return Attachment(pid, connection)


@contextmanager
def _looking(pid: int, process: int) -> Iterator[None]:
    """Has the process look for us while the block runs. Raises AttachError: it cannot."""
    _refuse_other_user(pid)
    _refuse_other_namespaces(pid)
    environment = _environment_of(pid)
    if _is_in_standby(pid, environment):
        signal.pidfd_send_signal(process, SIGNAL)
        yield
        return
    if not hasattr(sys, "remote_exec"):
        raise AttachError(
            f"process {pid} is not in standby: start it with QUERYPROF=standby (one of Python 3.14"
            " or newer needs none, if this command runs by the same Python)"
        )
    if any(one.startswith(b"PYTHON_DISABLE_REMOTE_DEBUG=") for one in environment):
        raise AttachError(
            f"process {pid} has remote debugging switched off (PYTHON_DISABLE_REMOTE_DEBUG): start"
            " it with QUERYPROF=standby"
        )
    with _script() as path:
        _remote_exec(pid, path)
        try:
            yield
        except AttachError:
            # What it has not looked at yet, it must not miss: an empty script is in its place.
            with suppress(AttachError):
                _remote_exec(pid, os.devnull)
            raise


def _refuse_other_user(pid: int) -> None:
    user = int(_status_of(pid, "Uid").split()[1])
    if user != os.geteuid():
        raise AttachError(f"process {pid} is of user {user}: run this command as that user")


def _refuse_other_namespaces(pid: int) -> None:
    for name in NAMESPACES:
        try:
            is_same = (
                os.stat(f"/proc/{pid}/ns/{name}").st_ino == os.stat(f"/proc/self/ns/{name}").st_ino
            )
        except OSError as error:
            raise AttachError(f"process {pid} cannot be looked at: {error.strerror}") from error
        if not is_same:
            raise AttachError(f"process {pid} is in a container of its own: run this command in it")


def _status_of(pid: int, field: str) -> str:
    """A field of /proc/PID/status (proc_pid_status(5)). Raises AttachError."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(line for line in lines if line.startswith(f"{field}:")).partition(":")[2]
    except (OSError, StopIteration) as error:
        raise AttachError(f"no process {pid} runs") from error


def _environment_of(pid: int) -> list[bytes]:
    """The variables with which it was started; []: they cannot be read."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _is_in_standby(pid: int, environment: list[bytes]) -> bool:
    """Whether it was started so, and has a handler for the signal: others would die of it."""
    caught = int(_status_of(pid, "SigCgt"), 16)
    return f"QUERYPROF={STANDBY}".encode() in environment and bool(caught >> (SIGNAL - 1) & 1)


@contextmanager
def _script() -> Iterator[str]:
    """The path of the script while the block runs."""
    parent = str(Path(__file__).parents[2])
    with tempfile.NamedTemporaryFile("w", prefix="queryprof-attach-", suffix=".py") as file:
        file.write(SCRIPT.format(parent=parent))
        file.flush()
        yield file.name


def _remote_exec(pid: int, script: str) -> None:
    """By the debugger's interface of Python 3.14 (PEP 768). Raises AttachError."""
    try:
        sys.remote_exec(pid, script)  # type: ignore[attr-defined]
    except PermissionError as error:
        raise AttachError(
            f"process {pid} may not be traced by this one (ptrace(2); kernel.yama.ptrace_scope)"
        ) from error
    except (RuntimeError, OSError) as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise AttachError(
            f"process {pid} is no Python {version} that can be attached to ({error}): run this"
            " command by its Python, or start it with QUERYPROF=standby"
        ) from error


@contextmanager
def _listening(pid: int) -> Iterator[socket.socket]:
    """The socket that the process looks at. Raises AttachError: another command has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        try:
            listening.bind(name_of(pid))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise AttachError(f"another command is about to attach to process {pid}") from error
        listening.listen()
        yield listening


def _answer_of(pid: int, process: int, listening: socket.socket) -> socket.socket:
    """The process's connection. Raises AttachError: it has ended, or does not answer."""
    waiting = select.poll()
    waiting.register(listening.fileno(), select.POLLIN)
    waiting.register(process, select.POLLIN)
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
    while (left_s := deadline_s - time.monotonic()) > 0:
        ready = {file for file, _ in waiting.poll(left_s * 1000)}
        if process in ready:
            raise AttachError(f"process {pid} has ended")
        if listening.fileno() in ready:
            connection, _ = listening.accept()
            connection.settimeout(BEGIN_TIMEOUT_S)
            if peer_of(connection)[0] == pid:
                return connection
            connection.close()
    raise AttachError(
        f"process {pid} has not answered within {ANSWER_TIMEOUT_S:.0f} s: its main thread runs no"
        " Python (it waits, a call in C takes long, or it is stopped)"
    )
