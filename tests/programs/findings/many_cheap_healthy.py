import random
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT)")
db.executemany("INSERT INTO word VALUES (?, ?)", [(i, f"w{i}") for i in range(50_000)])
draw = random.Random(1)
words = dict(db.execute("SELECT id, text FROM word"))
assert sum(len(words[draw.randrange(50_000)]) for _ in range(60_000))
assert db.execute("SELECT text FROM word WHERE id = 7").fetchone() == ("w7",)
