"""How `queryprof attach` and a program speak: a socket, and JSON, one object a line.

The command listens at a name that has the program's process id, has the program look there (by a
signal, or by sys.remote_exec), and sends a request. The program answers, and that is all; the end
is another request. Each side lets the kernel say who the other one is (SO_PEERCRED in
unix(7)): another user's is not heard.
"""

from __future__ import annotations

import _socket
import json
import struct
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_LINE = 1 << 16
"""Bytes."""

CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def name_of(pid: int) -> bytes:
    """The name of the socket for a process, which is no file, and gone with its owner."""
    return b"\0queryprof-attach-%d" % pid


def peer_of(connection: Any) -> tuple[int, int]:
    """Return the process id and the user id of the other side."""
    level, option = _socket.SOL_SOCKET, _socket.SO_PEERCRED
    pid, uid, _ = CREDENTIALS.unpack(connection.getsockopt(level, option, CREDENTIALS.size))
    return pid, uid


def send(connection: Any, **message: object) -> None:
    """Sends a message. Raises OSError."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def receive(connection: Any, timeout_s: float) -> dict[str, Any]:
    """Return the next message; {} if the other side is gone or sent something else.

    Args:
        timeout_s: for the whole message, however slowly its bytes come.

    Raises:
        OSError: the connection failed, or the time is over.
    """
    deadline_s = monotonic() + timeout_s
    line = b""
    while not line.endswith(b"\n"):
        try:
            some = _received(connection, deadline_s - monotonic())
        except TimeoutError:
            raise TimeoutError(f"no complete message within {timeout_s:g} s") from None
        line += some
        if not some or len(line) > LONGEST_LINE:
            return {}
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _received(connection: Any, timeout_s: float) -> bytes:
    """Return the bytes that come next. Raises TimeoutError."""
    if timeout_s <= 0:
        raise TimeoutError
    connection.settimeout(timeout_s)
    some: bytes = connection.recv(4096)
    return some
