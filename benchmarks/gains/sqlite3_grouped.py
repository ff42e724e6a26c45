"""The sums of each group of a table that is scanned and sorted: a covering index in the order of
the groups.
"""

import sqlite3
import sys

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute(
    "CREATE TABLE sale (id INTEGER PRIMARY KEY, seller INTEGER, total REAL, day INTEGER, text TEXT)"
)
db.executemany(
    "INSERT INTO sale VALUES (?, ?, ?, ?, ?)",
    [(n, n * 7919 % 503, n / 2, n * 31 % 365, f"as agreed in {n}") for n in range(40_000)],
)
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX sale_seller_total ON sale (seller, total)")


def totals() -> None:
    for least in range(20):
        db.execute(
            "SELECT seller, sum(total) AS s FROM sale GROUP BY seller HAVING s > ?", (least,)
        ).fetchall()


run(totals, totals)
