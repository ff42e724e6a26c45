import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, blog INTEGER, score INTEGER)")
db.executemany(
    "INSERT INTO post VALUES (?, ?, ?)", [(i, i % 2, i * 7919 % 10007) for i in range(20_000)]
)
db.execute("CREATE INDEX post_blog ON post (blog)")


def best(blog: int) -> list[int]:
    query = "SELECT id FROM post WHERE blog = ? ORDER BY score DESC LIMIT 5"
    return [row[0] for row in db.execute(query, (blog,))]  # culprit


assert all(len(best(number % 2)) == 5 for number in range(100))
