"""Run commands as forks of one process that has already imported their modules.

A command is a process like any other, with its own arguments, environment, directory and streams,
but starts in milliseconds. This file as a script is the process that forks:

    python forked.py SOCKET MODULES...
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module

AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "MALLOC")
"""Prefixes of variables that an interpreter reads when it starts."""


class Forked:
    """Starts processes with preloaded modules.

    Raises subprocess.TimeoutExpired, as subprocess.run does.
    """

    def __init__(self, *modules: str, environment: dict[str, str] | None = None) -> None:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind("")  # to a name that the kernel chooses
        listening.listen()
        self._address = listening.getsockname()
        self._environment = environment or dict(os.environ)
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno()), *modules],
            pass_fds=[listening.fileno()],
            env=self._environment,
            stdin=subprocess.DEVNULL,
        )
        listening.close()

    def end(self) -> None:
        self._server.kill()
        self._server.wait()

    def can_run(self, environment: dict[str, str]) -> bool:
        """Return whether a new interpreter would have the same settings as the server."""
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
        """Run `module:function`; the first argument is the program's name."""
        request = {
            "entry": entry,
            "arguments": arguments,
            "environment": environment,
            "cwd": os.fspath(cwd or os.getcwd()),  # type: ignore[call-overload]
        }
        stdin, to_stdin = os.pipe()
        os.write(to_stdin, (input or "").encode())  # less than a pipe holds
        os.close(to_stdin)
        outputs = [os.pipe(), os.pipe()]
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._address)
            data = json.dumps(request).encode()
            streams = [stdin, *(written for _, written in outputs)]
            socket.send_fds(connection, [len(data).to_bytes(4, "big")], streams)
            connection.sendall(data)
            for stream in streams:
                os.close(stream)
            with connection.makefile() as answers:
                pid = int(answers.readline())
                printed = _read_all([read for read, _ in outputs], timeout)
                if printed is None:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(arguments, timeout or 0)
                status = os.waitstatus_to_exitcode(int(answers.readline()))
            return subprocess.CompletedProcess(arguments, status, *printed)


def _read_all(pipes: list[int], timeout_s: float | None) -> list[str] | None:
    """Return everything from the pipes, or None if they do not end in time. Close them."""
    ends_s = time.monotonic() + (timeout_s or 3600)
    read = dict.fromkeys(pipes, b"")
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < ends_s:
            for key, _ in selector.select(max(0, ends_s - time.monotonic())):
                data = os.read(key.fd, 1 << 16)
                read[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
        is_whole = not selector.get_map()
    for pipe in pipes:
        os.close(pipe)
    texts = [io.TextIOWrapper(io.BytesIO(data)).read() for data in read.values()]
    return texts if is_whole else None


def serve(listening: socket.socket) -> tuple[str, list[str]]:
    """Fork for each request. Return in the child, with the entry and the arguments."""
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
                with connection, suppress(OSError):  # the test may stop waiting
                    connection.sendall(b"%d\n" % status)


def _become(request: dict, streams: list[int]) -> None:
    """Give this process the streams, environment and directory of the command."""
    names = ("stdin", "stdout", "stderr")
    for number, (name, stream) in enumerate(zip(names, streams, strict=True)):
        os.dup2(stream, number)
        os.close(stream)
        was = getattr(sys, name)  # it remembers the kind of the server's stream
        file = open(number, was.mode, encoding=was.encoding, errors=was.errors, closefd=False)
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])


def _close(running: selectors.BaseSelector, connection: socket.socket) -> None:
    """Close the server's own files."""
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
        with suppress(ImportError):  # of a library that is not installed for this Python
            import_module(name)
    gc.collect()
    gc.freeze()
    entry, sys.argv = serve(listening)
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    status = 0
    try:
        module, _, function = entry.partition(":")
        getattr(import_module(module), function)()
    except SystemExit as end:
        if end.code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:
        traceback.print_exc()
        status = 1
    # Freeing every object would touch, and so copy, every page that is shared with the server.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
