"""`queryprof attach` to loaded servers: no request fails, and requests meanwhile are counted.

QUERYPROF_ATTACHMENTS and QUERYPROF_REQUESTS make it longer.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from recorder.running_programs import ATTACH, STANDBY

from conftest import by_operation
from queryprof.collect.reader import read_profile

ATTACHMENTS = int(os.environ.get("QUERYPROF_ATTACHMENTS", "4"))
REQUESTS = int(os.environ.get("QUERYPROF_REQUESTS", "400"))
"""The requests during each attachment."""

CLIENTS = 4

WSGI = """
import os, sqlite3, threading
local = threading.local()
def app(environ, start_response):
    if environ["PATH_INFO"] == "/pid":
        body = str(os.getpid()).encode()
    else:
        if not hasattr(local, "connection"):
            local.connection = sqlite3.connect(":memory:")
        body = str(local.connection.execute("SELECT ? + 1", (1,)).fetchone()[0]).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""
ASGI = """
import os, sqlite3
connection = sqlite3.connect(":memory:", check_same_thread=False)
async def app(scope, receive, send):
    assert scope["type"] == "http"
    body = str(os.getpid()).encode()
    if scope["path"] != "/pid":
        body = str(connection.execute("SELECT ? + 1", (1,)).fetchone()[0]).encode()
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
"""
SERVERS = {
    "gunicorn": (
        WSGI,
        ["-m", "gunicorn", "--bind", "127.0.0.1:0", "-k", "gthread", "--threads", "4", "web:app"],
        "Listening at: http://127.0.0.1:",
    ),
    "uvicorn": (
        ASGI,
        [
            "-m",
            "uvicorn",
            "--port",
            "0",
            "--lifespan",
            "off",
            "--no-access-log",
            "--loop",
            "asyncio",
            "web:app",
        ],
        "running on http://127.0.0.1:",
    ),
    "uvloop": (
        ASGI,
        [
            "-m",
            "uvicorn",
            "--port",
            "0",
            "--lifespan",
            "off",
            "--no-access-log",
            "--loop",
            "uvloop",
            "web:app",
        ],
        "running on http://127.0.0.1:",
    ),
}


class Load:
    """Clients that send requests all the time, and check every answer."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers = 0
        self.wrong: list[object] = []
        self._changed = threading.Condition()
        self._is_over = False
        self._threads = [threading.Thread(target=self._client) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _client(self) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as client:
            while not self._is_over:
                try:
                    client.request("GET", "/")
                    response = client.getresponse()
                    found = response.status, response.read()
                except Exception as error:
                    self.wrong.append(error)
                    found = 200, b"2"
                    client.close()
                with self._changed:
                    self.answers += 1
                    if found != (200, b"2"):
                        self.wrong.append(found)
                    self._changed.notify_all()

    def more(self, number: int) -> None:
        """Wait for this many more answers."""
        with self._changed:
            wanted = self.answers + number
            self._changed.wait_for(lambda: self.answers >= wanted, timeout=100)

    def end(self) -> None:
        self._is_over = True
        for thread in self._threads:
            thread.join()


@pytest.mark.once
@pytest.mark.parametrize(
    "name",
    ["uvicorn", *(pytest.param(n, marks=pytest.mark.slow) for n in SERVERS if n != "uvicorn")],
)
@pytest.mark.slow
def test_attachments_to_a_loaded_server(name: str) -> None:
    text, command, ready = SERVERS[name]
    if not find_spec(name):
        pytest.skip(f"no {name} here")
    Path("web.py").write_text(text)
    server = subprocess.Popen(
        [sys.executable, *command],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **STANDBY},
    )
    lines: list[str] = []
    try:
        assert server.stderr is not None
        for line in server.stderr:
            lines.append(line)
            if ready in line:
                port = int(line.rpartition(ready)[2].split()[0].rstrip("/"))
                break
        else:
            pytest.fail("".join(lines))
        rest = threading.Thread(target=lambda: lines.extend(server.stderr or ()))
        rest.start()
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
            client.request("GET", "/pid")
            pid = int(client.getresponse().read())
        load = Load(port)
        for number in range(ATTACHMENTS):
            attached = subprocess.Popen(
                [*ATTACH, str(pid), "-o", "x.qprof", "--no-report"],
                stderr=subprocess.PIPE,
                text=True,
            )
            assert attached.stderr is not None
            message = attached.stderr.readline()
            assert "is recorded" in message, message
            load.more(REQUESTS)
            attached.terminate()
            assert attached.communicate(timeout=100)[1] == "", number
            profile = read_profile("x.qprof")
            counted = by_operation(profile)["SELECT ? + ?", "execute"]
            # Requests in progress at the begin or the end belong to neither side.
            assert counted >= REQUESTS - 2 * CLIENTS
            if name != "gunicorn":
                assert [loop.kind for loop in profile.loops] == [
                    "uvloop" if name == "uvloop" else "asyncio"
                ]
        load.more(REQUESTS)
        load.end()
        assert load.wrong == []
    finally:
        server.terminate()
        server.wait(timeout=60)
    rest.join()
    server.stderr.close()
    assert not [line for line in lines if "rror" in line or "Traceback" in line], lines
