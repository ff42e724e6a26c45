import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, blog INTEGER, score INTEGER)")
db.executemany(
    "INSERT INTO post VALUES (?, ?, ?)", [(i, i % 2, i * 7919 % 10007) for i in range(20_000)]
)
db.execute("CREATE INDEX post_blog_score ON post (blog, score)")
for number in range(15):
    query = "SELECT id FROM post WHERE blog = ? ORDER BY score DESC LIMIT 5"
    assert len(db.execute(query, (number % 2,)).fetchall()) == 5
assert db.execute("SELECT id FROM post ORDER BY id % 7, score").fetchall()  # a sort that ran once
