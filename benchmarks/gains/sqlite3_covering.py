"""Each row is looked up in the table: a covering index."""

import sqlite3
import sys

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, owner INTEGER, price INTEGER, text TEXT)")
rows = [(n * 7919 % 500, n % 100, "x" * 300) for n in range(50_000)]
db.executemany("INSERT INTO item (owner, price, text) VALUES (?, ?, ?)", rows)
db.execute("CREATE INDEX item_owner ON item (owner)")
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX item_owner_price ON item (owner, price)")


def prices() -> None:
    for owner in range(500):
        db.execute("SELECT sum(price) FROM item WHERE owner = ?", (owner,)).fetchone()


run(prices, prices)
