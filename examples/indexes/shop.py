"""A shop without indexes. `shop.py FILE fill` creates its database. `shop.py FILE` runs an hour of
queries.
"""

import random
import sqlite3
import sys

SCHEMA = """
    CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT, city TEXT, created INTEGER);
    CREATE TABLE product (id INTEGER PRIMARY KEY, sku TEXT, category TEXT, price REAL);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, status TEXT, created INTEGER, total REAL);
    CREATE TABLE item (id INTEGER PRIMARY KEY, order_id INTEGER, product_id INTEGER, quantity INTEGER, price REAL);
    CREATE TABLE review (id INTEGER PRIMARY KEY, product_id INTEGER, customer_id INTEGER, stars INTEGER, text TEXT);
"""
CUSTOMERS = PRODUCTS = 30_000
ORDERS, ITEMS, REVIEWS = 50_000, 60_000, 40_000
DAYS = 1_000_000


def fill(connection: sqlite3.Connection, draw: random.Random) -> None:
    connection.executescript(SCHEMA)
    connection.executemany(
        "INSERT INTO customer VALUES (?, ?, ?, ?)",
        (
            (i, f"User{i}@Example.org", f"city{draw.randrange(200)}", draw.randrange(DAYS))
            for i in range(CUSTOMERS)
        ),
    )
    connection.executemany(
        "INSERT INTO product VALUES (?, ?, ?, ?)",
        ((i, f"sku{i}", f"cat{draw.randrange(50)}", draw.random() * 100) for i in range(PRODUCTS)),
    )
    statuses = ("open", "paid", "sent", "sent", "sent")
    connection.executemany(
        "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
        (
            (
                i,
                draw.randrange(CUSTOMERS),
                draw.choice(statuses),
                draw.randrange(DAYS),
                draw.random(),
            )
            for i in range(ORDERS)
        ),
    )
    connection.executemany(
        "INSERT INTO item VALUES (?, ?, ?, ?, ?)",
        (
            (i, draw.randrange(ORDERS), draw.randrange(PRODUCTS), draw.randrange(9), draw.random())
            for i in range(ITEMS)
        ),
    )
    connection.executemany(
        "INSERT INTO review VALUES (?, ?, ?, ?, ?)",
        (
            (i, draw.randrange(PRODUCTS), draw.randrange(CUSTOMERS), draw.randrange(5), "text " * 9)
            for i in range(REVIEWS)
        ),
    )


def day(connection: sqlite3.Connection, draw: random.Random) -> None:
    def ask(sql: str, *values: object) -> list[tuple[int, ...]]:
        return connection.execute(sql, values).fetchall()

    for _ in range(5):
        ask(
            "SELECT id, email FROM customer WHERE lower(email) = ?",
            f"user{draw.randrange(CUSTOMERS)}@example.org",
        )
        orders = ask(
            "SELECT id, status, total FROM orders WHERE customer_id = ? ORDER BY created DESC"
            " LIMIT 20",
            draw.randrange(CUSTOMERS),
        )
        for order in orders:
            ask(
                "SELECT i.quantity, i.price, p.sku FROM item i JOIN product p ON p.id ="
                " i.product_id WHERE i.order_id = ?",
                order[0],
            )
        ask(
            "SELECT count(*), avg(stars) FROM review WHERE product_id = ?", draw.randrange(PRODUCTS)
        )
        ask(
            "SELECT id, sku FROM product WHERE category = ? AND price < ? ORDER BY price LIMIT 10",
            f"cat{draw.randrange(50)}",
            50,
        )
        ask("SELECT city, count(*) FROM customer GROUP BY city ORDER BY 2 DESC, 1 LIMIT 5")
        ask(
            "SELECT o.id, sum(i.price * i.quantity) FROM orders o JOIN item i ON i.order_id = o.id"
            " WHERE o.status = ? AND o.created > ? GROUP BY o.id",
            "open",
            DAYS - 10_000,
        )
        ask(
            "INSERT INTO orders (customer_id, status, created, total) VALUES (?, ?, ?, ?)",
            1,
            "open",
            1,
            1.0,
        )
        ask("UPDATE orders SET status = 'paid' WHERE status = 'open' AND created < ?", 10)
    connection.commit()


database = sqlite3.connect(sys.argv[1])
if "fill" in sys.argv:
    fill(database, random.Random(1))  # noqa: S311
    database.commit()
else:
    day(database, random.Random(2))  # noqa: S311
database.close()
