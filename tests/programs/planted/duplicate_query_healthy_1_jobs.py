"""A worker asks for the next job: the same query each time, another answer each time."""
import hashlib
import sqlite3


class Jobs:
    def __init__(self, count: int) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, done INTEGER DEFAULT 0)")
        self.db.execute("CREATE INDEX open_job ON job (id) WHERE done = 0")
        self.db.executemany("INSERT INTO job (id) VALUES (?)", ((i,) for i in range(count)))

    def next(self) -> int | None:
        row = self.db.execute("SELECT id FROM job WHERE done = 0 ORDER BY id LIMIT 1").fetchone()
        return row and row[0]

    def finish(self, job: int) -> None:
        self.db.execute("UPDATE job SET done = 1 WHERE id = ?", (job,))


def work(number: int) -> str:
    return hashlib.sha256(str(number).encode() * 60_000).hexdigest()


jobs = Jobs(1500)
while (job := jobs.next()) is not None:
    work(job)
    jobs.finish(job)
