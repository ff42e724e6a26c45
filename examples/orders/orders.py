"""A small shop. Its tests show how to limit queries."""

from __future__ import annotations

import sqlite3

SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, amount REAL NOT NULL);
CREATE INDEX orders_of_customer ON orders (customer);
"""


def make_shop(customers: int = 50, orders_each: int = 40) -> sqlite3.Connection:
    """Create a shop in memory with customers and orders."""
    shop = sqlite3.connect(":memory:")
    shop.executescript(SCHEMA)
    shop.executemany(
        "INSERT INTO customer (name) VALUES (?)", [(f"customer {i}",) for i in range(customers)]
    )
    shop.executemany(
        "INSERT INTO orders (customer, amount) VALUES (?, ?)",
        [(1 + i % customers, float(i)) for i in range(customers * orders_each)],
    )
    shop.commit()
    return shop


def revenue_of(shop: sqlite3.Connection, customer: int) -> float:
    """Return the sum of a customer's orders."""
    row = shop.execute("SELECT sum(amount) FROM orders WHERE customer = ?", (customer,)).fetchone()
    return float(row[0] or 0)


def best_customers(shop: sqlite3.Connection, count: int) -> list[tuple[str, float]]:
    """Return the customers with the largest revenue, in one query."""
    return shop.execute(
        "SELECT name, sum(amount) FROM customer JOIN orders ON orders.customer = customer.id"
        " GROUP BY customer.id ORDER BY 2 DESC LIMIT ?",
        (count,),
    ).fetchall()
