import random
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT)")
db.executemany("INSERT INTO word VALUES (?, ?)", [(i, f"w{i}") for i in range(50_000)])
draw = random.Random(1)


def word(number: int) -> str:
    row = db.execute("SELECT text FROM word WHERE id = ?", (number,)).fetchone()  # culprit
    return str(row[0])


assert all(map(word, [draw.randrange(50_000) for _ in range(60_000)]))
