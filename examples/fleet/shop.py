"""The work of one host of the fleet: some requests of a shop, in version 1 or 2.

Version 2 lacks an index, and its list reads each customer in a separate query.
"""

from __future__ import annotations

import os
import sqlite3
import sys

import queryprof

ORDERS, CUSTOMERS, REQUESTS = 3000, 300, 40


def pretend_to_be(host: str) -> None:
    """Give this process the name of a host: all hosts of this example are one machine."""
    real = os.uname()
    os.uname = lambda: os.uname_result((real[0], host, *real[2:]))  # type: ignore[misc]


def database(version: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT)")
    connection.execute("CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INT, day INT)")
    if version == "1":
        connection.execute("CREATE INDEX purchase_customer ON purchase (customer)")
    with connection:
        connection.executemany(
            "INSERT INTO customer VALUES (?, ?)", [(n, f"customer {n}") for n in range(CUSTOMERS)]
        )
        connection.executemany(
            "INSERT INTO purchase VALUES (?, ?, ?)",
            [(n, n * 7 % CUSTOMERS, n % 100) for n in range(ORDERS)],
        )
    return connection


def show_customer(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("SELECT id, day FROM purchase WHERE customer = ?", (number,)).fetchall()


def list_orders(connection: sqlite3.Connection, day: int, version: str) -> None:
    if version == "1":
        sql = (
            "SELECT p.id, c.name FROM purchase p JOIN customer c ON c.id = p.customer WHERE day = ?"
        )
        connection.execute(sql, (day,)).fetchall()
        return
    found = connection.execute("SELECT id, customer FROM purchase WHERE day = ?", (day,)).fetchall()
    for _, customer in found:
        connection.execute("SELECT name FROM customer WHERE id = ?", (customer,)).fetchone()


def main(host: str, version: str, trace: str) -> None:
    pretend_to_be(host)
    connection = database(version)
    queryprof.install(trace, window="1h")
    for number in range(REQUESTS):
        with queryprof.span("GET /customers"):
            show_customer(connection, number * 11 % CUSTOMERS)
        with queryprof.span("GET /orders"):
            list_orders(connection, number, version)


if __name__ == "__main__":
    main(*sys.argv[1:])
