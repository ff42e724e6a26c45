"""The protocol between `queryprof attach` and a program: a socket with one JSON object per line.

The command listens at a name that contains the program's process id. A signal or sys.remote_exec
makes the program connect. The command sends a request, the program answers, and the connection
ends. Ending the recording is another request. Each side checks the other's user id through the
kernel (SO_PEERCRED in unix(7)), and ignores other users.
"""

from __future__ import annotations

import _socket
import json
import struct
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Begin = Callable[[str, object], bool]
    """A function that begins to record for a runner (`Runner.variable`) and an owner. Returns
    whether recording was off before.
    """

MAX_LINE_BYTES = 1 << 16
"""Maximum length of a message."""

CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def socket_name(pid: int) -> bytes:
    """Return the name of the socket for a process. The name is not a file, and disappears with its
    owner.
    """
    return b"\0queryprof-attach-%d" % pid


def peer_ids(connection: Any) -> tuple[int, int]:
    """Return the process id and the user id of the process at the other end."""
    level, option = _socket.SOL_SOCKET, _socket.SO_PEERCRED
    pid, uid, _ = CREDENTIALS.unpack(connection.getsockopt(level, option, CREDENTIALS.size))
    return pid, uid


def send_message(connection: Any, **message: object) -> None:
    """Send a message. Raises OSError."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def receive_message(connection: Any, timeout_s: float) -> dict[str, Any]:
    """Return the next message; {} if the other process has closed the connection or sent something
    else.

    Args:
        timeout_s: limit for the complete message, however slowly its bytes arrive.

    Raises:
        OSError: the connection failed, or the time limit passed.
    """
    deadline_s = monotonic() + timeout_s
    line = b""
    while not line.endswith(b"\n"):
        try:
            some = _receive_bytes(connection, deadline_s - monotonic())
        except TimeoutError:
            raise TimeoutError(f"no complete message within {timeout_s:g} s") from None
        line += some
        if not some or len(line) > MAX_LINE_BYTES:
            return {}
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _receive_bytes(connection: Any, timeout_s: float) -> bytes:
    """Return the next bytes. Raises TimeoutError."""
    if timeout_s <= 0:
        raise TimeoutError
    connection.settimeout(timeout_s)
    some: bytes = connection.recv(4096)
    return some
