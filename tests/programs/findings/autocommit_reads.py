import sqlite3
import tempfile

folder = tempfile.TemporaryDirectory()
db = sqlite3.connect(f"{folder.name}/shop.db")
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, price REAL)")
with db:
    db.executemany("INSERT INTO item VALUES (?, ?)", [(i, i / 3) for i in range(1000)])


def price(item: int) -> float:
    row = db.execute("SELECT price FROM item WHERE id = ?", (item,)).fetchone()  # culprit
    return float(row[0])


assert sum(price(number % 1000) for number in range(20_000))
db.close()
