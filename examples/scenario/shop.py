"""A shop's database that several processes use at once."""

from __future__ import annotations

import os
import sqlite3

PATH = os.path.join("checkout-run", "shop.db")


def connect() -> sqlite3.Connection:
    return sqlite3.connect(PATH, timeout=30)


def open_shop() -> None:
    """Create an empty shop."""
    shop = connect()
    shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, client INTEGER, amount REAL)")
    shop.close()


def place_orders(count: int) -> None:
    """Insert one client's orders, each in its own transaction."""
    shop = connect()
    for number in range(count):
        with shop:
            shop.execute(
                "INSERT INTO orders (client, amount) VALUES (?, ?)", (os.getpid(), number * 1.5)
            )
    shop.close()


def report() -> None:
    """Print the number and the sum of the orders so far, in one row."""
    shop = connect()
    orders, amount = shop.execute("SELECT count(*), total(amount) FROM orders").fetchone()
    print(f"{orders} orders for {amount:,.2f}")
    shop.close()
