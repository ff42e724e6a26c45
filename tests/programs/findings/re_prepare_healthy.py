import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
db.executemany("INSERT INTO item VALUES (?, ?, 1)", [(i, f"i{i}") for i in range(5000)])
for column in ("id", "name", "price"):  # few texts
    assert db.execute(f"SELECT {column} FROM item").fetchall()
