# category: lock_wait
# fix: less in each|one thread|write-ahead|WAL
import os
import sqlite3
import threading

PATH = "metrics.db"


class Rollup:
    """Rebuilds the daily sums, while the dashboard wants to read them."""

    def __init__(self, ready: threading.Event) -> None:
        self.db = sqlite3.connect(PATH, isolation_level=None)
        self.db.execute("PRAGMA synchronous = OFF")
        self.ready = ready

    def rebuild(self) -> None:
        self.db.execute("BEGIN EXCLUSIVE")  # culprit
        self.ready.set()
        self.db.execute("DELETE FROM daily")  # culprit
        self.db.execute(  # culprit
            "INSERT INTO daily SELECT day, host, sum(value), max(value) FROM metric GROUP BY day, host"
        )
        self.db.execute("COMMIT")  # culprit


def dashboard(ready: threading.Event, sums: list[float]) -> None:
    db = sqlite3.connect(PATH, timeout=60)
    ready.wait()
    sums.append(db.execute("SELECT total(amount) FROM daily WHERE day = 3").fetchone()[0])  # culprit
    db.close()


if os.path.exists(PATH):
    os.remove(PATH)
setup = sqlite3.connect(PATH)
setup.execute("CREATE TABLE metric (day INTEGER, host INTEGER, value REAL)")
setup.execute("CREATE TABLE daily (day INTEGER, host INTEGER, amount REAL, peak REAL)")
setup.executemany("INSERT INTO metric VALUES (?, ?, ?)", ((i % 30, i * 7919 % 4001, i / 3) for i in range(250_000)))
setup.commit()
setup.close()
ready, sums = threading.Event(), []
readers = [threading.Thread(target=dashboard, args=(ready, sums)) for _ in range(4)]
for reader in readers:
    reader.start()
Rollup(ready).rebuild()
for reader in readers:
    reader.join()
assert len(sums) == 4
os.remove(PATH)
