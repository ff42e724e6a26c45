"""Web applications of other people's frameworks under other people's servers, over loopback: exact
query counts by route, call sites in the application's files, every process in the trace.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import queryprof
from conftest import QUERYPROF
from queryprof.collect.reader import read_profile
from queryprof.model import Profile

WEB = Path(__file__).parent / "web"
BIN = Path(sys.executable).parent
ORDERS = 12


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "PRAGMA journal_mode = WAL; CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);"
        " CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER);"
    )
    connection.executemany(
        "INSERT INTO customer VALUES (?, ?)", [(n, f"customer {n}") for n in range(1, 51)]
    )
    connection.executemany(
        "INSERT INTO purchase VALUES (?, ?)", [(n, n % 50 + 1) for n in range(1, ORDERS + 1)]
    )
    connection.commit()
    connection.close()
    return path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(shop: Path, *command: str) -> Iterator[str]:
    """Run a recorded server until the block ends. The value is its address."""
    port = free_port()
    arguments = [part.replace("PORT", str(port)) for part in command]
    process = subprocess.Popen(
        [QUERYPROF, "run", "-o", "web.qprof", *arguments],
        env={**os.environ, "SHOP": str(shop), "PYTHONPATH": str(WEB), "QUERYPROF_ROOTS": str(WEB)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.1)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert "queryprof:" not in errors, errors


def get(address: str) -> tuple[int, bytes, str]:
    """Return status, body and Server-Timing of a request."""
    try:
        with urllib.request.urlopen(address, timeout=30) as response:
            return response.status, response.read(), response.headers["Server-Timing"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers["Server-Timing"]


def queries(profile: Profile) -> Counter[tuple[str, str, str]]:
    """Return executions by (span, statement, calling function)."""
    found: Counter[tuple[str, str, str]] = Counter()
    for a in profile.aggregates:
        if a.operation == "execute":
            found[a.span, a.statement, a.path[0].function] += a.count
            assert a.path[0].file.startswith(str(WEB)), a.path
    return found


@pytest.mark.once
@pytest.mark.slow
def test_flask_under_gunicorn(shop: Path) -> None:
    """Four workers serve 200 requests: every query of every route is recorded, in every process."""
    command = (str(BIN / "gunicorn"), "-w", "4", "-b", "127.0.0.1:PORT", "flask_shop:app")
    with served(shop, *command) as address:
        for number in range(140):
            status, body, timing = get(f"{address}/customers/{number % 50 + 1}")
            assert (status, json.loads(body)["name"]) == (200, f"customer {number % 50 + 1}")
            assert timing.startswith("db;dur=")
            assert timing.endswith(';desc="1 query"')
        for _ in range(30):
            status, body, timing = get(f"{address}/orders")
            assert (status, len(json.loads(body))) == (200, ORDERS)
            assert timing.endswith(f';desc="{ORDERS + 1} queries"')
        for _ in range(10):
            assert get(f"{address}/stream")[1].split() == [b"%d" % n for n in range(1, ORDERS + 1)]
        assert {get(f"{address}/customers/999")[0] for _ in range(10)} == {404}
        assert {get(f"{address}/broken")[0] for _ in range(5)} == {500}
        assert {get(f"{address}/no/such/{n}/page")[0] for n in range(5)} == {404}
    profile = read_profile("web.qprof")
    one = "SELECT name FROM customer WHERE id = ?"
    customer, orders, stream = "GET /customers/<int:number>", "GET /orders", "GET /stream"
    assert queries(profile) == {
        (customer, one, "customer"): 150,
        (orders, "SELECT id, customer FROM purchase", "orders"): 30,
        (orders, one, "orders"): 30 * ORDERS,
        (stream, "SELECT id FROM purchase ORDER BY id", "stream.<locals>.lines"): 10,
        ("GET /broken", "SELECT * FROM nowhere", "broken"): 5,
    }
    spans = {span.name: span for span in profile.spans}
    assert set(spans) == {customer, orders, stream, "GET /broken", "GET /no/such/{id}/page"}
    assert {name: span.count for name, span in spans.items()} == {
        customer: 150,
        orders: 30,
        stream: 10,
        "GET /broken": 5,
        "GET /no/such/{id}/page": 5,
    }
    assert spans[customer].statuses == {200: 140, 404: 10}
    assert spans["GET /broken"].statuses == {500: 5}
    assert spans[orders].queries.max_ns == ORDERS + 1
    (repeat,) = spans[orders].repeats
    assert (repeat.statement, repeat.spans, repeat.executions) == (one, 30, 30 * ORDERS)
    assert [len(s.repeats) for s in spans.values() if s is not spans[orders]] == [0] * 4
    assert all(0 < s.database_ns < s.durations.total_ns for s in (spans[customer], spans[orders]))
    assert spans[customer].cpu_count == 150
    # The master, and those of the four workers that the kernel gave a request.
    assert 2 <= len(profile.processes) <= 5
    assert len({process.parent_pid for process in profile.processes}) == 2


@pytest.mark.slow
def test_a_killed_worker_is_in_the_trace(shop: Path) -> None:
    """The trace of a worker that is killed with SIGKILL lacks at most the last second."""
    command = (str(BIN / "gunicorn"), "-w", "1", "-b", "127.0.0.1:PORT", "flask_shop:app")
    with served(shop, *command) as address:
        for number in range(20):
            assert get(f"{address}/customers/{number + 1}")[0] == 200
        time.sleep(1.5)
        worker = subprocess.run(
            ["pgrep", "-f", f"gunicorn.*{address.rpartition(':')[2]}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        os.kill(int(worker[-1]), signal.SIGKILL)
        time.sleep(1)
        for number in range(10):
            assert get(f"{address}/customers/{number + 1}")[0] == 200
    profile = read_profile("web.qprof")
    assert sum(queries(profile).values()) == 30
    # The worker that was killed, the master, and the worker that took its place.
    assert sorted(process.clean_end for process in profile.processes) == [False, True, True]


@pytest.mark.once
def test_starlette_under_uvicorn(shop: Path) -> None:
    """In 200 requests over one aiosqlite connection, the call site is the coroutine's line, not the
    thread's.
    """
    command = (str(BIN / "uvicorn"), "starlette_shop:app", "--port", "PORT")
    with served(shop, *command) as address:
        for number in range(150):
            status, body, timing = get(f"{address}/customers/{number % 50 + 1}")
            assert (status, json.loads(body)["name"]) == (200, f"customer {number % 50 + 1}")
            assert timing.endswith(';desc="1 query"')
        for _ in range(40):
            status, body, timing = get(f"{address}/lists/orders")
            assert (status, len(json.loads(body))) == (200, ORDERS)
            assert timing.endswith(f';desc="{ORDERS + 1} queries"')
        assert {get(f"{address}/customers/999")[0] for _ in range(10)} == {404}
    profile = read_profile("web.qprof")
    one = "SELECT name FROM customer WHERE id = ?"
    customer, orders = "GET /customers/{number:int}", "GET /lists/orders"
    assert queries(profile) == {
        (customer, one, "customer"): 160,
        (orders, "SELECT id, customer FROM purchase", "orders"): 40,
        (orders, one, "name_of"): 40 * ORDERS,
    }
    spans = {span.name: span for span in profile.spans}
    assert {name: span.count for name, span in spans.items()} == {customer: 160, orders: 40}
    assert spans[customer].statuses == {200: 150, 404: 10}
    assert [r.executions for r in spans[orders].repeats] == [40 * ORDERS]
    assert spans[orders].cpu_count == 40
    assert 0 < spans[orders].cpu_ns < spans[orders].durations.total_ns
    handoffs = Counter({(h.path[0].function, h.span): h.count for h in profile.handoffs})
    for h in profile.handoffs:
        assert (h.kind, h.errors, h.cancelled) == ("aiosqlite", 0, 0)
        assert h.queue.count == h.run.count == h.handback.count == h.total.count == h.count
        parts = h.queue.total_ns + h.run.total_ns + h.handback.total_ns
        assert abs(h.total.total_ns - parts) < 1000 * h.count
    assert handoffs["customer", customer]
    assert handoffs["name_of", orders]


@pytest.mark.once
def test_fastapi(tmp_path: Path) -> None:
    """Routes of included routers have their patterns. Plain functions run in AnyIO's threads."""
    pytest.importorskip("fastapi")
    (tmp_path / "program.py").write_text(
        """
import asyncio, sqlite3, httpx, queryprof
from fastapi import APIRouter, FastAPI

app = FastAPI()
router = APIRouter(prefix="/v1")

@router.get("/customers/{number}")
def customer(number: int):
    connection = sqlite3.connect(":memory:")
    (found,) = connection.execute("SELECT ?", (number,)).fetchone()
    connection.close()
    return found

app.include_router(router)
app.add_middleware(queryprof.AsgiMiddleware, server_timing=True)

async def main():
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        for number in range(5):
            response = await client.get(f"/v1/customers/{number}")
            assert response.json() == number
            assert response.headers["server-timing"].endswith(';desc="1 query"')
        assert (await client.get("/nowhere/17")).status_code == 404

queryprof.install("fastapi.qprof")
asyncio.run(main())
"""
    )
    subprocess.run([sys.executable, "program.py"], check=True, timeout=60)
    profile = read_profile("fastapi.qprof")
    pattern = "GET /v1/customers/{number}"
    assert {span.name: span.count for span in profile.spans} == {pattern: 5, "GET /nowhere/{id}": 1}
    (select,) = [a for a in profile.aggregates if a.operation == "execute"]
    assert (select.count, select.span, select.path[0].function) == (5, pattern, "customer")
    assert select.path[1].function == "main"
    (handoff,) = profile.handoffs
    assert (handoff.kind, handoff.count, handoff.handback.count) == ("anyio", 5, 5)


def test_a_response_with_a_length_keeps_it() -> None:
    """A server sends a Content-Length if the response has one part, whatever its type."""
    import io
    import sys
    from wsgiref.handlers import SimpleHandler

    def app(environ: object, start: Any) -> Any:
        start("200 OK", [("Content-Type", "text/plain")])
        return {b"hello": 1}

    with queryprof.profile():
        output = io.BytesIO()
        environ = {"REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.0"}
        handler = SimpleHandler(io.BytesIO(), output, sys.stderr, environ)
        handler.run(queryprof.WsgiMiddleware(app))  # type: ignore[arg-type]
    assert b"Content-Length: 5" in output.getvalue()
