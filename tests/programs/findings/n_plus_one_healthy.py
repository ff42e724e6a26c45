import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT)")
db.execute("CREATE TABLE book (id INTEGER PRIMARY KEY, author_id INTEGER, title TEXT)")
for number in range(5000):  # a bulk insert is a loop, too
    db.execute("INSERT INTO author VALUES (?, ?)", (number, f"a{number}"))
db.executemany("INSERT INTO book VALUES (?, ?, ?)", [(i, i % 5000, f"b{i}") for i in range(10_000)])
db.commit()
found: dict[str, list[str]] = {}
query = "SELECT name, title FROM author JOIN book ON author_id = author.id"
for name, title in db.execute(query):
    found.setdefault(name, []).append(title)
for number in range(5):  # a loop over few
    db.execute("SELECT name FROM author WHERE id = ?", (number,)).fetchone()
assert len(found) == 5000
