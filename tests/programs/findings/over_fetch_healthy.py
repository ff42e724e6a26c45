import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE price (id INTEGER PRIMARY KEY, item INTEGER, at INTEGER, amount REAL)")
rows = [(i, i % 4, i * 7919 % 10007, i / 3) for i in range(20_000)]
db.executemany("INSERT INTO price VALUES (?, ?, ?, ?)", rows)
db.execute("CREATE INDEX price_item ON price (item, at)")
for number in range(15):
    query = "SELECT amount FROM price WHERE item = ? ORDER BY at DESC LIMIT 1"
    assert db.execute(query, (number % 4,)).fetchone()
assert db.execute("SELECT max(at) FROM price").fetchone()
