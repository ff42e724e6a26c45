"""In the program: answer a `queryprof attach` command that begins or ends a recording.

This runs in a thread that ends with the answer. During the recording there is no thread, no
connection and no descriptor. The command connects again to end the recording. If the command is
killed, its guardian process ends the recording.
"""

from __future__ import annotations

import _socket
import os

from queryprof.core.absence import absence_reason
from queryprof.recorder.fork_guard import fork_guard
from queryprof.recorder.messages import peer_ids, receive_message, send_message, socket_name
from queryprof.recorder.session import session
from queryprof.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from queryprof.recorder.messages import Begin

REQUEST_TIMEOUT_S = 5.0
"""How long a command may take to send its request, and to receive the answer."""


def answer_command(begin: Begin) -> None:
    """Connect to the command that signalled this process, and do what it requests.

    Does nothing if the command no longer exists. May raise any exception.
    """
    connection = _connect_to_command()
    if connection is None:
        return
    identity = _file_identity(connection)
    request: dict[str, Any] = {}
    try:
        request = receive_message(connection, REQUEST_TIMEOUT_S)
        if request:
            connection.settimeout(REQUEST_TIMEOUT_S)
            send_message(connection, **attachment.answer(request, begin))
    except OSError:
        attachment.end_unanswered(request)
    finally:
        if identity and _file_identity(connection) == identity:
            connection.close()
        else:
            # the program has closed the descriptor, whose number may now belong to another file
            connection.detach()


def _connect_to_command() -> Any:
    """Return a connection to a command of this user, or None."""
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    except OSError:
        return None  # no descriptor is free; the command will try again
    try:
        connection.settimeout(REQUEST_TIMEOUT_S)
        connection.connect(socket_name(os.getpid()))
        if peer_ids(connection)[1] in (0, os.geteuid()):
            return connection
    except OSError:
        pass
    connection.close()
    return None


def _file_identity(connection: Any) -> tuple[int, int] | None:
    """Return the identity of a descriptor's file; None if it is closed."""
    try:
        found = os.fstat(connection.fileno())
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Attachment:
    """The recording of this process for a command. Owns the recording.

    Attributes:
        runner: identifies the command; "" without one.
    """

    def __init__(self) -> None:
        self.runner = ""
        self._watches_fork = False

    def answer(self, request: dict[str, Any], begin: Begin) -> dict[str, object]:
        """Do what a command requests, and return the answer."""
        if "end" in request:
            is_its = bool(self.runner) and request["end"] == self.runner
            if is_its:
                self._end()
            return {"ended": is_its}
        refusal = self._begin(request, begin)
        return {"refused": refusal} if refusal else {"began": True}

    def end_unanswered(self, request: dict[str, Any]) -> None:
        """End a recording whose command disconnected before it received the answer."""
        if self.runner and request.get("runner") == self.runner:
            self._end()

    def _begin(self, request: dict[str, Any], begin: Begin) -> str:
        """Begin to record. Returns the reason for a refusal, or ""."""
        if request.get("version") != __version__:
            return f"it has queryprof {__version__}; use the same version of this command"
        if absence_reason():
            return f"nothing can be recorded there: {absence_reason()}"
        if self.runner and session.is_on:
            if _is_runner_running(self.runner):
                return "another command is attached to it"
            # the command and its guardian were killed
            self._end()
        self._watch_forks()
        runner = str(request.get("runner"))
        try:
            is_new = begin(runner, self)
        except Exception as error:
            return str(error) or type(error).__name__
        if not is_new:
            session.release(self)
            return "it is recorded already: see `queryprof top`"
        self.runner = runner
        return ""

    def _end(self) -> None:
        self.runner = ""
        session.release(self)

    def _watch_forks(self) -> None:
        if not self._watches_fork and hasattr(os, "register_at_fork"):
            self._watches_fork = True
            session.watch_forks()  # first, so that a child is complete when its recording ends
            os.register_at_fork(after_in_child=self._after_fork_in_child)
            fork_guard.watch()

    def _after_fork_in_child(self) -> None:
        """End the recording in a forked child, because the command attached only to its parent."""
        if self.runner:
            self._end()


def _is_runner_running(runner: str) -> bool:
    """Return whether the process of a command is running; True if unknown."""
    pid = runner.partition(":")[0]
    try:
        with open(f"/proc/{int(pid)}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"  # proc_pid_stat(5)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (OSError, ValueError, IndexError):
        return True  # the process cannot be checked


attachment = Attachment()
"""The attachment of this process."""
