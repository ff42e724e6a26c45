import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, title TEXT)")
db.executemany("INSERT INTO post VALUES (?, ?)", [(i, f"p{i}") for i in range(30_000)])
last = -1
seen = 0
while rows := db.execute(
    "SELECT id, title FROM post WHERE id > ? ORDER BY id LIMIT 5000", (last,)
).fetchall():
    last = rows[-1][0]
    seen += len(rows)
for number in range(3):  # the first pages
    db.execute("SELECT title FROM post ORDER BY id LIMIT 10 OFFSET ?", (10 * number,)).fetchall()
assert seen == 30_000
