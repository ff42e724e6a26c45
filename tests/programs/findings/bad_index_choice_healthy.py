import sqlite3
import tempfile

folder = tempfile.mkdtemp()
db = sqlite3.connect(f"{folder}/jobs.db")
db.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT, worker INTEGER)")
rows = [(i, "done", i % 5000) for i in range(20_000)]
db.executemany("INSERT INTO job VALUES (?, ?, ?)", rows)
db.execute("CREATE INDEX job_worker ON job (worker)")
db.execute("CREATE INDEX job_state ON job (state)")
db.execute("ANALYZE")
db.commit()
for worker in range(15):
    query = "SELECT id FROM job WHERE state = ? AND worker BETWEEN ? AND ?"
    assert len(db.execute(query, ("done", worker, worker)).fetchall()) == 4
db.close()
