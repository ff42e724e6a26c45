"""Bigger reads, a few hundred: the lock is nothing beside them."""
import os
import sqlite3
from statistics import pstdev


class Prices:
    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE price (share INTEGER, day INTEGER, cents INTEGER, PRIMARY KEY (share, day)) WITHOUT ROWID")
        with self.db:
            rows = ((i // 500, i % 500, 5000 + i * 7919 % 1009) for i in range(100_000))
            self.db.executemany("INSERT INTO price VALUES (?, ?, ?)", rows)

    def volatility(self, share: int) -> float:
        cents = [row[0] for row in self.db.execute("SELECT cents FROM price WHERE share = ?", (share,))]
        return pstdev(b - a for a, b in zip(cents, cents[1:]))


if os.path.exists("prices.db"):
    os.remove("prices.db")
prices = Prices("prices.db")
print(sorted(prices.volatility(share) for share in range(200))[-3:])
prices.db.close()
os.remove("prices.db")
