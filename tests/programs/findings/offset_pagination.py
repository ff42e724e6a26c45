import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, title TEXT)")
db.executemany("INSERT INTO post VALUES (?, ?)", [(i, f"p{i}") for i in range(30_000)])


def page(number: int) -> list[str]:
    query = "SELECT title FROM post ORDER BY id LIMIT 50 OFFSET ?"
    return [row[0] for row in db.execute(query, (50 * number,))]  # culprit


pages = 0
while page(pages):
    pages += 1
assert pages == 600
