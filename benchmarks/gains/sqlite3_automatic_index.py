"""SQLite builds an index for each execution: an index."""

import sqlite3
import sys

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE buyer (id INTEGER PRIMARY KEY, code TEXT)")
db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, buyer_code TEXT, amount REAL)")
db.executemany("INSERT INTO buyer VALUES (?, ?)", [(n, f"c{n}") for n in range(300)])
db.executemany("INSERT INTO sale VALUES (?, ?, 1)", [(n, f"c{n % 300}") for n in range(10_000)])
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX sale_code ON sale (buyer_code)")


def sales() -> None:
    for number in range(20):
        db.execute(
            "SELECT buyer.id, amount FROM buyer JOIN sale ON buyer_code = code"
            " WHERE +buyer.id BETWEEN ? AND ?",
            (number * 10, number * 10 + 9),
        ).fetchall()


run(sales, sales)
