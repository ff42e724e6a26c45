import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE price (id INTEGER PRIMARY KEY, item INTEGER, at INTEGER, amount REAL)")
rows = [(i, i % 4, i * 7919 % 10007, i / 3) for i in range(20_000)]
db.executemany("INSERT INTO price VALUES (?, ?, ?, ?)", rows)
db.execute("CREATE INDEX price_item ON price (item)")


def latest(item: int) -> float:
    query = "SELECT amount FROM price WHERE item = ? ORDER BY at DESC"
    return float(db.execute(query, (item,)).fetchone()[0])  # culprit


assert all(latest(number % 4) for number in range(100))
