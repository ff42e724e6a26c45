"""In the program: answers a command that wants to record it, or to end that.

It runs in a thread that ends with the answer. While the recording is on there is no thread, no
connection and no descriptor: the command comes again to end it, and has a process that does so when
it is killed.
"""

from __future__ import annotations

import _socket
import os

from queryprof.attachment.forks import forks
from queryprof.attachment.messages import name_of, peer_of, receive, send
from queryprof.core.absence import absence
from queryprof.session import session
from queryprof.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from queryprof.attachment.standby import Begin

REQUEST_TIMEOUT_S = 5.0
"""How long a command may take to send its request, and to take the answer."""


def answer(begin: Begin) -> None:
    """Connects to the command that has had this process look, and does what it wants; nothing
    where none is there any more. Raises Exception.
    """
    connection = _connected()
    if connection is None:
        return
    identity = _identity(connection)
    request: dict[str, Any] = {}
    try:
        request = receive(connection, REQUEST_TIMEOUT_S)
        if request:
            connection.settimeout(REQUEST_TIMEOUT_S)
            send(connection, **attachment.answer(request, begin))
    except OSError:
        attachment.end_unheard(request)
    finally:
        if identity and _identity(connection) == identity:
            connection.close()
        else:
            connection.detach()  # the program has closed it; its number may be another file's


def _connected() -> Any:
    """The connection to the command; None: there is none of this user."""
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    except OSError:
        return None  # there is no descriptor; the command comes again
    try:
        connection.settimeout(REQUEST_TIMEOUT_S)
        connection.connect(name_of(os.getpid()))
        if peer_of(connection)[1] in (0, os.geteuid()):
            return connection
    except OSError:
        pass
    connection.close()
    return None


def _identity(connection: Any) -> tuple[int, int] | None:
    """Of the file behind a descriptor; None: it is closed."""
    try:
        found = os.fstat(connection.fileno())
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Attachment:
    """The recording of this process for a command: the owner of it.

    Attributes:
        runner: of the command; "": there is none.
    """

    def __init__(self) -> None:
        self.runner = ""
        self._watches_fork = False

    def answer(self, request: dict[str, Any], begin: Begin) -> dict[str, object]:
        """Does what a command wants; the answer."""
        if "end" in request:
            is_its = bool(self.runner) and request["end"] == self.runner
            if is_its:
                self._end()
            return {"ended": is_its}
        refusal = self._begin(request, begin)
        return {"refused": refusal} if refusal else {"began": True}

    def end_unheard(self, request: dict[str, Any]) -> None:
        """Ends what a command began that has gone before it heard of it."""
        if self.runner and request.get("runner") == self.runner:
            self._end()

    def _begin(self, request: dict[str, Any], begin: Begin) -> str:
        """Begins to record; returns why not, or "": it has begun."""
        if request.get("version") != __version__:
            return f"it has queryprof {__version__}, and this command is another one: use that"
        if absence():
            return f"nothing can be recorded there: {absence()}"
        if self.runner and session.is_on:
            if _lives(self.runner):
                return "another command is attached to it"
            self._end()  # it was killed, and what would have ended this, too
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
            session.watch_forks()  # first: a child of it is whole when it is ended here
            os.register_at_fork(after_in_child=self._after_fork_in_child)
            forks.watch()

    def _after_fork_in_child(self) -> None:
        """A child is not attached to: it runs on as it would without."""
        if self.runner:
            self._end()


def _lives(runner: str) -> bool:
    """Whether a runner's process runs."""
    pid = runner.partition(":")[0]
    try:
        with open(f"/proc/{int(pid)}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"  # proc_pid_stat(5)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (OSError, ValueError, IndexError):
        return True  # it cannot be looked at


attachment = Attachment()
"""Of this process."""
