import sqlite3
import tempfile

folder = tempfile.mkdtemp()
db = sqlite3.connect(f"{folder}/jobs.db")
db.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT, worker INTEGER)")
rows = [(i, "done", i % 5000) for i in range(20_000)]
db.executemany("INSERT INTO job VALUES (?, ?, ?)", rows)
db.execute("CREATE INDEX job_state ON job (state)")
db.execute("CREATE INDEX job_worker ON job (worker)")
db.commit()


def jobs(worker: int) -> list[int]:
    query = "SELECT id FROM job WHERE state = ? AND worker BETWEEN ? AND ?"
    return [row[0] for row in db.execute(query, ("done", worker, worker))]  # culprit


assert all(len(jobs(worker)) == 4 for worker in range(200))
db.close()
