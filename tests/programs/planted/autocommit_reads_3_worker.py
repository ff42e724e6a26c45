# category: autocommit_reads|many_cheap
# fix: one transaction|BEGIN|WAL|memory
import os
import random
import sqlite3
import threading


class Sampler(threading.Thread):
    """Walks through a graph at random, from one neighbour to the next."""

    def __init__(self, path: str, seed: int) -> None:
        super().__init__(name=f"sampler-{seed}")
        self.path, self.draw, self.seen = path, random.Random(seed), 0

    def neighbours(self, db: sqlite3.Connection, node: int) -> list[int]:
        rows = db.execute("SELECT target FROM edge WHERE source = ? LIMIT 3", (node,))  # culprit
        return [target for (target,) in rows]  # culprit

    def run(self) -> None:
        db = sqlite3.connect(self.path, isolation_level=None)
        node = 0
        while self.seen < 45_000:
            node = self.draw.choice(self.neighbours(db, node))  # culprit
            self.seen += 1
        db.close()


if os.path.exists("graph.db"):
    os.remove("graph.db")
db = sqlite3.connect("graph.db")
db.execute("CREATE TABLE edge (source INTEGER, target INTEGER, PRIMARY KEY (source, target)) WITHOUT ROWID")
db.executemany("INSERT OR IGNORE INTO edge VALUES (?, ?)", ((i % 8000, i * 7919 % 8000) for i in range(24_000)))
db.executemany("INSERT OR IGNORE INTO edge VALUES (?, ?)", ((i, (i + 1) % 8000) for i in range(8000)))
db.commit()
db.close()
sampler = Sampler("graph.db", 1)
sampler.start()
sampler.join()
os.remove("graph.db")
