# category: autocommit_reads|many_cheap|duplicate_query
# fix: one transaction|BEGIN|WAL|memory|keep the result
import os
import sqlite3


class Chain:
    """Each block says which one comes next: nobody can ask for two at once."""

    def __init__(self, path: str, blocks: int) -> None:
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE block (id INTEGER PRIMARY KEY, next INTEGER, weight INTEGER)")
        with self.db:
            rows = ((i, i * 7919 % blocks, i % 13) for i in range(blocks))
            self.db.executemany("INSERT INTO block VALUES (?, ?, ?)", rows)

    def block(self, number: int) -> tuple[int, int]:
        return self.db.execute("SELECT next, weight FROM block WHERE id = ?", (number,)).fetchone()  # culprit

    def weight(self, start: int, steps: int) -> int:
        total = 0
        while steps:
            start, weight = self.block(start)  # culprit
            total += weight
            steps -= 1
        return total


if os.path.exists("chain.db"):
    os.remove("chain.db")
chain = Chain("chain.db", 20_011)
print(chain.weight(1, 60_000))
chain.db.close()
os.remove("chain.db")
