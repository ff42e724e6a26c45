"""In the program: answers a command that wants to record it, in a thread of its own.

The thread waits in the kernel while the recording is on. It ends before a fork and begins again
after it: Python (3.12 on) warns of a fork where there are other threads, and the program may have
none.
"""

from __future__ import annotations

import _socket
import _thread
import os
import select
import time

from queryprof.attachment.messages import name_of, peer_of, receive, send
from queryprof.core.absence import absence
from queryprof.core.recorder import complain
from queryprof.session import session
from queryprof.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from queryprof.attachment.standby import Begin

REQUEST_TIMEOUT_S = 5.0
"""How long a command may take to send its request."""

THREAD_END_S = 1.0
"""How long a fork waits for the thread at the most."""


def answer(begin: Begin) -> None:
    """Connects to the command that has had this process look; does nothing where none is there any
    more. Raises nothing.
    """
    try:
        connection = _connected()
        if connection is not None:
            attachment.serve(connection, begin)
    except Exception as error:
        complain(f"queryprof attach: {type(error).__name__}: {error}")


def _connected() -> Any:
    """The connection to the command; None: there is none of this user."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(REQUEST_TIMEOUT_S)
        connection.connect(name_of(os.getpid()))
        if peer_of(connection)[1] in (0, os.geteuid()):
            return connection
    except OSError:
        pass
    connection.close()
    return None


class Attachment:
    """The recording of this process for a command.

    While it has a connection it has a thread, which alone ends it; but a fork ends that thread, and
    begins it again.
    """

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()  # around the life of these
        self._connection: Any = None
        self._wake = (-1, -1)  # a pipe: before a fork
        self._thread_id = 0
        self._watches_fork = False

    def serve(self, connection: Any, begin: Begin) -> None:
        """Records, if that can be, and waits for the end."""
        with self._lock:
            is_free = self._connection is None
            if is_free:
                self._thread_id = _thread.get_native_id()
                self._wake = os.pipe()
                self._connection = connection
        if not is_free:
            receive(connection)
            send(connection, refused="another command is attached to it")
            connection.close()
            return
        try:
            self._watch_forks()
            refusal = self._begin(receive(connection), begin)
            connection.settimeout(None)
            send(connection, **({"refused": refusal} if refusal else {"began": True}))
        except OSError:
            refusal = "it is gone"
        if refusal:
            self._end(is_said=True)
        else:
            self._watch()

    def _begin(self, request: dict[str, Any], begin: Begin) -> str:
        """Begins to record; returns why not, or "": it has begun."""
        if request.get("version") != __version__:
            return f"it has queryprof {__version__}, and this command is another one: use that"
        if absence():
            return f"nothing can be recorded there: {absence()}"
        try:
            is_new = begin(str(request.get("runner")), self)
        except Exception as error:
            return str(error) or type(error).__name__
        return "" if is_new else "it is recorded already: see `queryprof top`"

    def _watch(self) -> None:
        """Waits for the command's word, or its end; or for a fork, after which it goes on."""
        waiting = select.poll()
        with self._lock:
            self._thread_id = _thread.get_native_id()
            waiting.register(self._connection.fileno(), select.POLLIN)
            waiting.register(self._wake[0], select.POLLIN)
        if all(file != self._wake[0] for file, _ in waiting.poll()):
            self._end()

    def _end(self, is_said: bool = False) -> None:
        """Ends the recording, if it is this one's, says so, and ends the connection."""
        try:
            session.release(self)
            if not is_said:
                send(self._connection, ended=True)
        except OSError:
            pass  # the command is gone
        finally:
            with self._lock:
                self._close()

    def _close(self) -> None:
        self._connection.close()
        for file in self._wake:
            os.close(file)
        self._connection, self._wake, self._thread_id = None, (-1, -1), 0

    def _watch_forks(self) -> None:
        if not self._watches_fork and hasattr(os, "register_at_fork"):
            self._watches_fork = True
            session.watch_forks()  # first: a child of it is whole when it is ended here
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._after_fork_in_parent,
                after_in_child=self._after_fork_in_child,
            )

    def _before_fork(self) -> None:
        """Ends the thread."""
        with self._lock:
            thread = self._thread_id
            if not thread or thread == _thread.get_native_id():
                return
            os.write(self._wake[1], b"f")
        deadline_s = time.monotonic() + THREAD_END_S
        while os.path.exists(f"/proc/self/task/{thread}") and time.monotonic() < deadline_s:
            time.sleep(0.0001)

    def _after_fork_in_parent(self) -> None:
        if self._connection is not None and self._thread_id != _thread.get_native_id():
            os.read(self._wake[0], 1)
            _thread.start_new_thread(self._watch, ())

    def _after_fork_in_child(self) -> None:
        """A child is not attached to: it runs on as it would without."""
        self._lock = _thread.allocate_lock()
        if self._connection is not None:
            self._close()
            session.release(self)


attachment = Attachment()
"""Of this process."""
