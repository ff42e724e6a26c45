"""A shop with customers, orders and lines: the sample project that regressions are planted in."""

from __future__ import annotations

import sqlite3

SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, day TEXT NOT NULL);
CREATE TABLE line (id INTEGER PRIMARY KEY, orders INTEGER NOT NULL, article TEXT, price REAL);
CREATE INDEX customer_email ON customer (email);
CREATE INDEX orders_of_customer ON orders (customer, day);
CREATE INDEX lines_of_order ON line (orders);
"""


def open_shop() -> sqlite3.Connection:
    shop = sqlite3.connect(":memory:")
    shop.executescript(SCHEMA)
    return shop


def add_customers(shop: sqlite3.Connection, names: list[str]) -> None:
    rows = [(name, f"{name}@example.org") for name in names]
    shop.executemany("INSERT INTO customer (name, email) VALUES (?, ?)", rows)
    shop.commit()


def add_orders(shop: sqlite3.Connection, customer: int, days: list[str]) -> None:
    for day in days:
        order = shop.execute(
            "INSERT INTO orders (customer, day) VALUES (?, ?)", (customer, day)
        ).lastrowid
        shop.executemany(
            "INSERT INTO line (orders, article, price) VALUES (?, ?, ?)",
            [(order, f"article {number}", number * 1.5) for number in range(3)],
        )
    shop.commit()


def customer_by_email(shop: sqlite3.Connection, email: str) -> tuple[int, str] | None:
    return shop.execute("SELECT id, name FROM customer WHERE email = ?", (email,)).fetchone()


def orders_of(shop: sqlite3.Connection, customer: int) -> list[tuple[int, str]]:
    return shop.execute(
        "SELECT id, day FROM orders WHERE customer = ? ORDER BY day", (customer,)
    ).fetchall()


def invoice(shop: sqlite3.Connection, customer: int) -> dict[int, float]:
    """Return the price of each of a customer's orders, with one query for all lines."""
    orders = [number for number, _ in orders_of(shop, customer)]
    places = ", ".join("?" * len(orders))
    lines = shop.execute(
        f"SELECT orders, price FROM line WHERE orders IN ({places})", orders
    ).fetchall()
    return {order: sum(price for owner, price in lines if owner == order) for order in orders}


def latest_lines(shop: sqlite3.Connection) -> list[tuple[str, float]]:
    return shop.execute("SELECT article, price FROM line ORDER BY id DESC LIMIT 5").fetchall()


async def greet(shop: sqlite3.Connection, email: str) -> str:
    customer = customer_by_email(shop, email)
    return f"Hello, {customer[1]}" if customer else "Who are you?"
