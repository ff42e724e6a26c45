import sqlite3
import tempfile

folder = tempfile.TemporaryDirectory()
db = sqlite3.connect(f"{folder.name}/log.db")
db.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT)")
with db:
    for number in range(3000):
        db.execute("INSERT INTO entry (text) VALUES (?)", (f"line {number}",))
for batch in range(5):
    with db:
        db.executemany(
            "INSERT INTO entry (text) VALUES (?)", [(f"{batch} {i}",) for i in range(600)]
        )
db.close()
