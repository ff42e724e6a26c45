import sqlite3
import tempfile

folder = tempfile.mkdtemp()
db = sqlite3.connect(f"{folder}/log.db")
db.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, host TEXT, day INTEGER)")
db.execute("CREATE INDEX entry_host ON entry (host)")
db.execute("CREATE INDEX entry_host_day ON entry (host, day)")
with db:
    for number in range(20_000):
        row = (number, f"host{number * 7919 % 5000}", number % 30)
        db.execute("INSERT INTO entry VALUES (?, ?, ?)", row)  # culprit
assert db.execute("SELECT id FROM entry WHERE host = 'host7'").fetchall()
db.close()
