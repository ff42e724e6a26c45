"""A report of customers' orders in DuckDB, made 20 times."""

import duckdb

connection = duckdb.connect()
connection.execute(
    "CREATE TABLE customers AS SELECT range AS id, 'customer ' || range AS name FROM range(50)"
)
connection.execute(
    "CREATE TABLE orders AS SELECT range AS id, range % 50 AS customer, range % 365 AS day, range % 97 AS total"
    " FROM range(200000)"
)


def totals(day: int) -> list[tuple[str, int]]:
    """What each customer has ordered since a day."""
    return connection.execute(
        "SELECT c.name, sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer"
        " WHERE o.day > ? GROUP BY c.name",
        [day],
    ).fetchall()


for day in range(170, 190):
    totals(day)
