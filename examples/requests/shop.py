"""A small shop as a WSGI application, for `queryprof report --by span` and `--by thread`.

Its list of orders reads each customer's name in a separate query. Its export gives a thread more
work than it can do at once. The program sends itself some requests, without a network, and ends.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import queryprof

CUSTOMERS = 200
ORDERS = 30

directory = tempfile.TemporaryDirectory()
path = str(Path(directory.name, "shop.db"))
exporter = ThreadPoolExecutor(1, "export")


def database() -> sqlite3.Connection:
    return sqlite3.connect(path)


def fill() -> None:
    connection = database()
    connection.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT)")
    connection.execute("CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER)")
    with connection:
        connection.executemany(
            "INSERT INTO customer VALUES (?, ?)", [(n, f"customer {n}") for n in range(CUSTOMERS)]
        )
        connection.executemany(
            "INSERT INTO purchase VALUES (?, ?)", [(n, n * 7 % CUSTOMERS) for n in range(ORDERS)]
        )
    connection.close()


def name_of(connection: sqlite3.Connection, number: int) -> str:
    (name,) = connection.execute("SELECT name FROM customer WHERE id = ?", (number,)).fetchone()
    return str(name)


def show_customer(number: int) -> str:
    connection = database()
    name = name_of(connection, number)
    connection.close()
    return name


def list_orders() -> str:
    connection = database()
    orders = connection.execute("SELECT id, customer FROM purchase").fetchall()
    lines = [f"{number} {name_of(connection, customer)}" for number, customer in orders]
    connection.close()
    return "\n".join(lines)


def count_customers(letter: str) -> int:
    connection = database()
    sql = "SELECT count(*) FROM customer AS a, customer AS b WHERE a.name || b.name LIKE ?"
    (count,) = connection.execute(sql, (f"%{letter}%",)).fetchone()
    connection.close()
    return int(count)


def export() -> str:
    return ", ".join(map(str, exporter.map(count_customers, "0123456789")))


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    page = environ["PATH_INFO"]
    if page.startswith("/customers/"):
        text = show_customer(int(page.rpartition("/")[2]))
    else:
        text = {"/orders": list_orders, "/export": export}[page]()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [text.encode()]


def get(app: Callable[..., Iterable[bytes]], page: str) -> bytes:
    environ: dict[str, Any] = {"PATH_INFO": page}
    setup_testing_defaults(environ)
    return b"".join(app(environ, lambda *_: None))


if __name__ == "__main__":
    fill()
    app = queryprof.WsgiMiddleware(application)
    for number in range(100):
        get(app, f"/customers/{number}")
    for _ in range(20):
        get(app, "/orders")
    get(app, "/export")
    exporter.shutdown()
    directory.cleanup()
    print("Recorded as shop.qprof? Its page: queryprof html shop.qprof")
