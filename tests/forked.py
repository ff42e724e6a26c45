"""Runs commands as forks of one process that has imported what they need.

A command is a process as any other, with its own arguments, environment, directory and streams, and
starts in milliseconds. As a script this file is that process:

    python forked.py SOCKET MODULES...
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path

AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "MALLOC")
"""Variables that an interpreter reads when it starts begin with one of these."""

LARGEST_REQUEST_BYTES = 1 << 20


class Forked:
    """Commands of one kind: the functions `main` of a module, or modules as `python -m` runs them.

    Raises subprocess.TimeoutExpired, as subprocess.run does.
    """

    def __init__(self, directory: Path, *modules: str) -> None:
        self._address = str(directory / "s")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self._address)
        listening.listen()
        self._environment = dict(os.environ)
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno()), *modules],
            pass_fds=[listening.fileno()],
            stdin=subprocess.DEVNULL,
        )
        listening.close()

    def end(self) -> None:
        self._server.kill()
        self._server.wait()

    def can_run(self, environment: dict[str, str]) -> bool:
        """Whether an interpreter that starts now would be as the server is."""
        here = self._environment
        changed = {k for k in here.keys() | environment if here.get(k) != environment.get(k)}
        return not any(name.startswith(AT_START) for name in changed)

    def run(
        self,
        entry: str,
        arguments: list[str],
        environment: dict[str, str],
        *,
        cwd: object = None,
        input: str | None = None,  # noqa: A002  (as subprocess.run calls it)
        timeout: float | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `module:function`, or a module, with arguments; the first is the program's name."""
        request = {
            "entry": entry,
            "arguments": arguments,
            "environment": environment,
            "cwd": os.fspath(cwd or os.getcwd()),  # type: ignore[call-overload]
        }
        streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
        try:
            os.write(streams[0], (input or "").encode())
            os.lseek(streams[0], 0, os.SEEK_SET)
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(self._address)
                data = json.dumps(request).encode()
                assert len(data) < LARGEST_REQUEST_BYTES
                socket.send_fds(connection, [len(data).to_bytes(4, "big")], streams)
                connection.sendall(data)
                answers = connection.makefile()
                pid = int(answers.readline())
                connection.settimeout(timeout)
                try:
                    status = os.waitstatus_to_exitcode(int(answers.readline()))
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(arguments, timeout or 0) from None
            printed = []
            for stream in streams[1:]:
                os.lseek(stream, 0, os.SEEK_SET)
                with open(stream, encoding=None, closefd=False) as file:
                    printed.append(file.read())
            return subprocess.CompletedProcess(arguments, status, *printed)
        finally:
            for stream in streams:
                os.close(stream)


def serve(listening: socket.socket) -> tuple[str, list[str]]:
    """Forks for each request. Returns in the child, with the entry and the arguments."""
    running = selectors.DefaultSelector()
    running.register(listening, selectors.EVENT_READ)
    while True:
        for key, _ in running.select():
            if key.data is None:
                connection = listening.accept()[0]
                start, streams, _, _ = socket.recv_fds(connection, 4, 3)
                with connection.makefile("rb") as file:
                    request = json.loads(file.read(int.from_bytes(start, "big")))
                pid = os.fork()
                if not pid:
                    _become(request, streams)
                    _close(running, connection)
                    return request["entry"], request["arguments"]
                for stream in streams:
                    os.close(stream)
                connection.sendall(b"%d\n" % pid)
                running.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))
            else:
                running.unregister(key.fileobj)
                os.close(key.fd)
                pid, connection = key.data
                _, status = os.waitpid(pid, 0)
                with connection, suppress(OSError):  # the test may wait no longer
                    connection.sendall(b"%d\n" % status)


def _become(request: dict, streams: list[int]) -> None:
    """Gives this process the streams, environment and directory of the command."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])


def _close(running: selectors.BaseSelector, connection: socket.socket) -> None:
    """Closes what is the server's alone."""
    connection.close()
    for key in list(running.get_map().values()):
        if key.data is None:
            key.fileobj.close()  # type: ignore[union-attr]
        else:
            os.close(key.fd)
            key.data[1].close()
    running.close()


def main() -> None:
    listening = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        import_module(name)
    gc.collect()
    gc.freeze()
    entry, sys.argv = serve(listening)
    status = 0
    try:
        module, _, function = entry.partition(":")
        if function:
            getattr(import_module(module), function)()
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:
        traceback.print_exc()
        status = 1
    # To free every object would touch, and so copy, every page that is shared with the server.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
