import sqlite3
import tempfile

folder = tempfile.TemporaryDirectory()
db = sqlite3.connect(f"{folder.name}/shop.db")
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, price REAL)")
with db:
    db.executemany("INSERT INTO item VALUES (?, ?)", [(i, i / 3) for i in range(1000)])
db.execute("BEGIN")
rows = db.execute("SELECT id, price FROM item").fetchall()
for number in range(15):
    db.execute("SELECT price FROM item WHERE id = ?", (number,)).fetchone()
db.execute("COMMIT")
assert len(rows) == 1000
db.close()
