import functools
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT)")
db.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, done INTEGER)")
db.execute("INSERT INTO setting VALUES ('currency', 'EUR'), ('rate', '1.1')")
db.executemany("INSERT INTO job VALUES (?, 0)", [(i,) for i in range(15)])


@functools.lru_cache
def setting(name: str) -> str:
    row = db.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
    return str(row[0])


total = sum(float(setting("rate")) * i for i in range(5000))
while True:  # the same query, but something is written in between
    row = db.execute("SELECT id FROM job WHERE done = 0 LIMIT 1").fetchone()
    if row is None:
        break
    db.execute("UPDATE job SET done = 1 WHERE id = ?", row)
assert total > 0
